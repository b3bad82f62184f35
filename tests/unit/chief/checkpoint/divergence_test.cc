#include "chief/checkpoint/divergence.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "chief/checkpoint/checkpointer.h"
#include "common/checkpoint/folder.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/chief/support/manual_executor.h"
#include "tests/unit/chief/support/scripted_ps.h"

namespace lockstep::chief {
namespace {

// A job of one shard that keeps its last two checkpoints.
struct DivergingJob {
  DivergingJob() {
    REQUIRE(claim.Take({.job = 3, .epoch = 6, .term = 4, .chief = 8}).ok());
    checkpointer.emplace(
        CheckpointerOptions{.root = root.path(),
                            .keep_last = 2,
                            .manifest = {.epoch = 6},
                            .claim = &claim,
                            .waits_for_disk = true,
                            .warn = [this](std::string text) { warnings.push_back(text); }},
        std::vector<PsControl*>{&ps}, &executor);
  }

  // The warnings of a save of a variable with this value.
  std::vector<std::string> Save(int64_t version, float value) {
    warnings.clear();
    absl::StatusOr<std::string> saved = absl::UnknownError("not ended");
    checkpointer->Save(GlobalStep(version),
                       [&](absl::StatusOr<std::string> folder) { saved = std::move(folder); });
    Tensor values(DType::kFloat32, Shape({3}));
    values.as<float>()[2] = value;
    const auto file = WriteShard(ps.saves.front().folder(), 0, 1, {{"w", values.view()}});
    SaveReply reply;
    reply.set_file(file->file);
    reply.set_bytes(file->bytes);
    reply.set_has_non_finite(!file->is_finite);
    ps.saves.Answer(reply);
    executor.Run();
    REQUIRE(saved.ok());
    return warnings;
  }

  test::TemporaryFolder root;
  FolderClaim claim{root.path()};
  ScriptedPs ps;
  ManualExecutor executor;
  std::vector<std::string> warnings;
  std::optional<Checkpointer> checkpointer;
};

TEST_CASE("the first checkpoint of a model that has diverged is told with the way back") {
  DivergingJob job;
  CHECK(job.Save(10, 0).empty());
  const std::vector<std::string> told = job.Save(20, NAN);
  REQUIRE(told.size() == 1);
  CHECK_THAT(told[0],
             Catch::StartsWith(job.root.Path("ckpt-20") + " has values that are infinite or NaN; " +
                               job.root.Path("ckpt-10") + " is kept ") &&
                 Catch::EndsWith("--restore=" + job.root.Path("ckpt-10")));
  CHECK(job.Save(30, INFINITY).empty());
  CHECK(job.Save(40, NAN).empty());
  CHECK(*ListCheckpoints(job.root.path()) == std::vector<int64_t>{40, 30, 10});
  CHECK_FALSE(ReadManifest(job.root.Path("ckpt-40"))->IsFinite());
  // It has recovered, and diverges again.
  CHECK(job.Save(50, 0).empty());
  CHECK(job.Save(60, NAN).size() == 1);
}

TEST_CASE("a job that has diverged before its first checkpoint is told that there is no way back") {
  DivergingJob job;
  const std::vector<std::string> told = job.Save(10, NAN);
  REQUIRE(told.size() == 1);
  CHECK_THAT(told[0], Catch::Contains("no earlier checkpoint") && Catch::Contains("--fresh"));
}

TEST_CASE("nothing is said of a checkpoint whose values are finite") {
  CHECK(DescribeDivergence("/nowhere/ckpt-1", Manifest()).empty());
}

TEST_CASE("a folder whose other checkpoints cannot be read is told") {
  Manifest manifest;
  manifest.shards = {{.is_finite = false}};
  CHECK_THAT(DescribeDivergence("/nowhere/ckpt-1", manifest),
             Catch::Contains("is not known: ") && Catch::Contains("/nowhere"));
}

}  // namespace
}  // namespace lockstep::chief
