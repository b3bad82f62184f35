// Real asynchronous jobs.
#include <signal.h>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/client/status_client.h"
#include "tests/integration/cluster.h"
#include "tests/support/process.h"

namespace lockstep::test {
namespace {

using Catch::Matchers::Contains;
using nlohmann::json;

constexpr absl::Duration kWhole = absl::Seconds(60);
constexpr absl::Duration kCleanEnd = absl::Seconds(5);

TEST_CASE("an asynchronous job learns, evaluates and saves, and ends at its last step") {
  Cluster cluster(2, 3);
  const std::string checkpoints = cluster.folder().Path("checkpoints");
  cluster.StartAll({.max_steps = 900,
                    .sync = "asynchronous { max_staleness: 20 }",
                    .checkpoint = absl::StrCat("folder: '", checkpoints, "' every_steps: 300"),
                    .evaluation = "every_steps: 300"});
  const auto code = cluster.chief().Wait(kWhole);
  INFO(cluster.Logs());
  REQUIRE(code == 0);
  for (int i = 0; i < 3; ++i) CHECK(cluster.worker(i).Wait(kCleanEnd) == 0);
  for (int i = 0; i < 2; ++i) CHECK(cluster.ps(i).Wait(kCleanEnd) == 0);
  const json summary = json::parse(cluster.Summary());
  CHECK(summary["steps"] == 900);
  CHECK(summary["test_accuracy"] > 0.8);
  CHECK(summary["evaluations"].back()["step"] == 900);

  // What was evaluated last is what was saved.
  const std::string result_path = cluster.folder().Path("result.json");
  const Ended evaluate = RunToEnd(
      {Binary("worker/predict"), "evaluate", "--threads=1",
       "--checkpoint=" + summary["checkpoint"].get<std::string>(), "--json=" + result_path},
      absl::Seconds(30));
  INFO(evaluate.output);
  REQUIRE(evaluate.exit_code == 0);
  CHECK(summary["checkpoint"].get<std::string>() == checkpoints + "/ckpt-900");
  CHECK(json::parse(cluster.folder().Read("result.json"))["accuracy"] == summary["test_accuracy"]);
}

TEST_CASE("each tower of a worker pushes by itself") {
  Cluster cluster(2, 2);
  cluster.StartAll({.max_steps = 600, .sync = "asynchronous {}", .more = "towers: 2"});
  const auto code = cluster.chief().Wait(kWhole);
  INFO(cluster.Logs());
  REQUIRE(code == 0);
  const json summary = json::parse(cluster.Summary());
  CHECK(summary["steps"] == 600);
  CHECK(summary["test_accuracy"] > 0.8);
  // A step is of one tower's batch: a fourth of the global batch.
  const double examples =
      summary["examples_per_second"].get<double>() * summary["train_seconds"].get<double>();
  CHECK(examples == Approx(600 * JobText().global_batch / 4));
}

TEST_CASE("one worker that lives is enough, and status tells the mode and the staleness") {
  Cluster cluster(1, 2);
  cluster.StartAll({.max_steps = 1'000'000, .sync = "asynchronous {}"});
  REQUIRE(cluster.WaitForStep(50, kWhole));
  cluster.worker(0).Signal(SIGKILL);
  REQUIRE(cluster.worker(0).Wait(kCleanEnd) == 137);
  const std::string status = Binary("deploy/cli/status");
  CHECK_THAT(RunToEnd({status, cluster.spec().chief}, absl::Seconds(10)).output,
             Contains("asynchronous, each gradient is a step"));
  CHECK_THAT(RunToEnd({status, cluster.spec().ps[0]}, absl::Seconds(10)).output,
             Contains("staleness 0: "));
  const auto before = FetchStatus(cluster.spec().chief, absl::Seconds(2));
  REQUIRE(before.ok());
  CHECK(cluster.WaitForStep(before->global_step() + 200, kWhole));
}

}  // namespace
}  // namespace lockstep::test
