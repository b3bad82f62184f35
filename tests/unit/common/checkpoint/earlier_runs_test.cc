#include "common/checkpoint/earlier_runs.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/json_checksum.h"
#include "common/checkpoint/owner.h"
#include "common/fs/folder.h"
#include "common/tensor/tensor.h"
#include "tests/support/temporary_folder.h"

namespace lockstep {
namespace {

void WriteCheckpoint(const std::string& root, int64_t step, uint64_t epoch = 1) {
  const float value = static_cast<float>(step);
  const TensorView view{DType::kFloat32, Shape(), &value};
  const absl::StatusOr<ShardFile> shard =
      WriteShard(CheckpointFolder(root, step), 0, 1, {{"v", view}});
  REQUIRE(shard.ok());
  REQUIRE(CommitCheckpoint(root, {.step = step, .epoch = epoch, .shards = {*shard}}, 0).ok());
}

TEST_CASE("a checkpoint of an earlier run is found: the one of LATEST, or the highest") {
  const test::TemporaryFolder folder;
  const std::string root = folder.Path("checkpoints");
  CHECK(*FindCheckpoint(root) == "");
  REQUIRE(MakeFolders(CheckpointFolder(root, 700)).ok());  // an unfinished save
  CHECK(*FindCheckpoint(root) == "");
  WriteCheckpoint(root, 500);
  WriteCheckpoint(root, 300, 2);
  CHECK(*FindCheckpoint(root) == CheckpointFolder(root, 300));
  folder.Write("checkpoints/LATEST", "ckpt-700\n");
  CHECK(*FindCheckpoint(root) == CheckpointFolder(root, 500));
  folder.Write("checkpoints/LATEST", "nonsense");
  CHECK(*FindCheckpoint(root) == CheckpointFolder(root, 500));
}

TEST_CASE("checkpoints that are set aside are none of the new run's, and can be restored") {
  const test::TemporaryFolder folder;
  const std::string root = folder.Path("checkpoints");
  WriteCheckpoint(root, 500);
  WriteCheckpoint(root, 300, 2);
  REQUIRE(MakeFolders(CheckpointFolder(root, 700)).ok());
  folder.Write("checkpoints/notes.txt", "mine");
  const absl::StatusOr<std::string> aside = SetAsideCheckpoints(root);
  REQUIRE(aside.ok());
  CHECK(*aside == folder.Path("checkpoints/earlier-1"));
  CHECK(*FindCheckpoint(root) == "");
  CHECK(absl::IsNotFound(ResolveCheckpoint(root).status()));
  CHECK(*ResolveCheckpoint(*aside) == CheckpointFolder(*aside, 300));
  CHECK(*ListFolder(root) == std::vector<std::string>{"earlier-1", "notes.txt"});

  WriteCheckpoint(root, 100);
  CHECK(*SetAsideCheckpoints(root) == folder.Path("checkpoints/earlier-2"));
  CHECK(*ResolveCheckpoint(folder.Path("checkpoints/earlier-2")) ==
        folder.Path("checkpoints/earlier-2/ckpt-100"));
}

TEST_CASE("a chief that may not write any more sets nothing aside") {
  const test::TemporaryFolder folder;
  WriteCheckpoint(folder.path(), 500);
  const auto aside =
      SetAsideCheckpoints(folder.path(), [] { return absl::AbortedError("fenced"); });
  CHECK(aside.status() == absl::AbortedError("fenced"));
  CHECK(*ResolveCheckpoint(folder.path()) == CheckpointFolder(folder.path(), 500));
}

TEST_CASE("the highest epoch of a folder is that of its checkpoints or of its owner") {
  const test::TemporaryFolder folder;
  CHECK(*HighestEpoch(folder.Path("absent")) == 0);
  CHECK(*HighestEpoch(folder.path()) == 0);
  WriteCheckpoint(folder.path(), 500, 3);
  WriteCheckpoint(folder.path(), 300, 4);
  folder.Write("ckpt-900/manifest.json", "damaged");
  CHECK(*HighestEpoch(folder.path()) == 4);
  for (const uint64_t epoch : {2, 7}) {
    REQUIRE(WriteOwner(folder.path(), {.epoch = epoch}, nullptr).ok());
    CHECK(*HighestEpoch(folder.path()) == std::max<uint64_t>(epoch, 4));
  }
  folder.Write("OWNER.json", "damaged");
  CHECK(absl::IsDataLoss(HighestEpoch(folder.path()).status()));
}

// As a newer Lockstep would write it.
void WriteNewerManifest(const test::TemporaryFolder& folder, const std::string& checkpoint) {
  nlohmann::json manifest = {
      {"format", "lockstep-checkpoint"}, {"format_version", 1000}, {"epoch", 9}};
  AddChecksum("manifest_crc32c", &manifest);
  folder.Write(checkpoint + "/manifest.json", manifest.dump());
}

TEST_CASE("the epoch of a checkpoint in an unknown format is known from the owner alone") {
  const test::TemporaryFolder folder;
  WriteCheckpoint(folder.path(), 500, 3);
  WriteNewerManifest(folder, "ckpt-900");
  const absl::Status status = HighestEpoch(folder.path()).status();
  INFO(status.ToString());
  CHECK(absl::IsFailedPrecondition(status));
  CHECK(absl::StrContains(status.message(), folder.Path("ckpt-900/manifest.json")));
  CHECK(absl::StrContains(status.message(), "Remedy: "));
  REQUIRE(WriteOwner(folder.path(), {.epoch = 9}, nullptr).ok());
  CHECK(*HighestEpoch(folder.path()) == 9);
}

}  // namespace
}  // namespace lockstep
