// Real jobs whose loss becomes NaN.
#include <catch2/catch.hpp>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/checkpoint/checkpoint.h"
#include "tests/integration/cluster.h"
#include "tests/support/process.h"

namespace lockstep::test {
namespace {

using Catch::Matchers::Contains;

constexpr absl::Duration kWhole = absl::Seconds(60);
// Longer than a save takes, so that none is left out.
constexpr absl::Duration kSlowStep = absl::Milliseconds(10);

// After the step `last` of a sensible rate the weights overflow.
JobText Job(int max_steps, int last) {
  return {.max_steps = max_steps,
          .optimizer = absl::StrCat("sgd {} learning_rate { piecewise { boundaries: [", last,
                                    "] values: [0.05, 1e38] } }"),
          .checkpoint = "folder: 'checkpoints' every_steps: 5 keep_last: 2"};
}

std::string RunToItsEnd(Cluster* cluster, const JobText& job, const std::string& flag) {
  cluster->StartAll(job, {flag});
  const auto code = cluster->chief().Wait(kWhole);
  INFO(cluster->Logs());
  REQUIRE(code == 0);
  cluster->ps(0).Wait(kWhole);
  cluster->worker(0).Wait(kWhole);
  return cluster->chief().Output();
}

TEST_CASE("a job that diverges keeps its last finite checkpoint and says how to go back there") {
  Cluster cluster(1, 1);
  cluster.SlowDown(kSlowStep);
  const std::string root = cluster.folder().Path("checkpoints");
  const std::string diverging = RunToItsEnd(&cluster, Job(45, 20), "--resume");
  const std::string newest = *ResolveCheckpoint(root);
  CHECK(newest == root + "/ckpt-45");
  const Manifest manifest = *ReadManifest(newest);
  CHECK_FALSE(manifest.IsFinite());
  const std::optional<int64_t> finite = *FindFinite(root, manifest);
  REQUIRE(finite.has_value());
  const std::string kept = CheckpointFolder(root, *finite);
  CHECK(ResolveCheckpoint(kept).ok());
  CHECK_THAT(diverging, Contains(" is not a finite number. Remedy: "));
  const std::string told = kept + " is kept as the newest checkpoint without. Remedy: ";
  CHECK_THAT(diverging, Contains(told) && Contains("--restore=" + kept));
  CHECK(diverging.find(told) == diverging.rfind(told));

  const std::string resumed = RunToItsEnd(&cluster, Job(60, 20), "--resume");
  CHECK_THAT(resumed, Contains("the job goes on after it has diverged: " + newest) &&
                          Contains("--restore=" + kept));
  CHECK(ResolveCheckpoint(kept).ok());

  const std::string restored = RunToItsEnd(&cluster, Job(60, 60), "--restore=" + kept);
  CHECK_THAT(restored, !Contains("diverged"));
  CHECK(ReadManifest(*ResolveCheckpoint(root))->IsFinite());
}

}  // namespace
}  // namespace lockstep::test
