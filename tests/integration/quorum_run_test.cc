// Real jobs that lose a worker or the chief, and what the job file says about it.
#include <signal.h>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/integration/cluster.h"
#include "tests/support/process.h"

namespace lockstep::test {
namespace {

using Catch::Matchers::Contains;
using nlohmann::json;

constexpr absl::Duration kWhole = absl::Seconds(60);
constexpr absl::Duration kCleanEnd = absl::Seconds(5);
constexpr int kForeverSteps = 1'000'000;
// Seconds: a job that is still there when its step 50 has been seen.
constexpr int kManySteps = 400;
constexpr absl::Duration kSlowStep = absl::Milliseconds(10);
constexpr char kShortLease[] = "--lease=2";

TEST_CASE("SHRINK: a job of two goes on with one when the other is killed") {
  Cluster cluster(2, 2);
  cluster.SlowDown(kSlowStep);
  cluster.StartAll({.max_steps = kManySteps, .sync = "quorum_policy: SHRINK"}, {kShortLease});
  REQUIRE(cluster.WaitForStep(20, kWhole));
  cluster.worker(1).Signal(SIGKILL);
  const auto code = cluster.chief().Wait(kWhole);
  const auto worker = cluster.worker(0).Wait(kCleanEnd);
  INFO(cluster.Logs());
  CHECK(code == 0);
  CHECK(worker == 0);
  CHECK_THAT(cluster.chief().Output(), Contains("steps go on with 1 of 2 gradients; worker 1 ("));
  const json summary = json::parse(cluster.Summary());
  CHECK(summary["steps"] == kManySteps);
  CHECK(summary["test_accuracy"] > 0.8);
}

TEST_CASE("ABORT: a job of two ends with an error that names the one that was killed") {
  Cluster cluster(1, 2);
  cluster.StartAll({.max_steps = kForeverSteps, .sync = "quorum_policy: ABORT"}, {kShortLease});
  REQUIRE(cluster.WaitForStep(20, kWhole));
  cluster.worker(1).Signal(SIGKILL);
  const auto code = cluster.chief().Wait(kWhole);
  const auto worker = cluster.worker(0).Wait(kCleanEnd);
  const auto ps = cluster.ps(0).Wait(kCleanEnd);
  INFO(cluster.Logs());
  CHECK(code == 138);
  CHECK_THAT(cluster.chief().Output(),
             Contains(": worker 1 (" + cluster.spec().workers[1] + ") was lost") &&
                 Contains("1 worker lives and has data. Remedy: "));
  CHECK(worker == 138);
  CHECK(ps == 138);
}

TEST_CASE("a chief that is killed and started again takes over, and the result is the same") {
  const JobText job{.max_steps = 300};
  json summaries[2];
  for (const bool killed : {false, true}) {
    Cluster cluster(2, 2);
    if (killed) cluster.SlowDown(kSlowStep);
    cluster.StartAll(job);
    Process* chief = &cluster.chief();
    std::unique_ptr<Process> successor;
    if (killed) {
      REQUIRE(cluster.WaitForStep(20, kWhole));
      chief->Signal(SIGKILL);
      REQUIRE(chief->Wait(kCleanEnd) == 137);
      successor = std::make_unique<Process>(cluster.Chief(cluster.folder().Path("job.textproto")));
      chief = successor.get();
    }
    const auto code = chief->Wait(kWhole);
    INFO(cluster.Logs() << "successor:\n" << chief->Output());
    REQUIRE(code == 0);
    for (int i = 0; i < 2; ++i) CHECK(cluster.worker(i).Wait(kCleanEnd) == 0);
    summaries[killed] = json::parse(cluster.Summary());
    if (killed) CHECK_THAT(chief->Output(), Contains("taking over at step "));
  }
  CHECK(summaries[0]["steps"] == summaries[1]["steps"]);
  CHECK(summaries[0]["test_loss"] == summaries[1]["test_loss"]);
}

TEST_CASE("a gradient that is not finite ends the job where the job refuses it") {
  Cluster cluster(1, 2);
  cluster.StartAll({.max_steps = kForeverSteps,
                    .optimizer = "sgd {} learning_rate { base: 1e30 }",
                    .sync = "non_finite: REFUSE_NON_FINITE"});
  const auto code = cluster.chief().Wait(kWhole);
  INFO(cluster.Logs());
  CHECK(code == 79);
  const std::string output = cluster.chief().Output();
  CHECK_THAT(output, Contains("worker ") && Contains("variable \"") &&
                         (Contains("nan") || Contains("inf")) && Contains("limit the gradient"));
  // The sentence is the last line, and nowhere else.
  CHECK(output.find("limit the gradient") == output.rfind("limit the gradient"));
}

}  // namespace
}  // namespace lockstep::test
