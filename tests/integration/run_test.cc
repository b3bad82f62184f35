// Whole jobs on real processes.
#include <signal.h>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/client/status_client.h"
#include "tests/integration/cluster.h"
#include "tests/support/process.h"

namespace lockstep::test {
namespace {

using Catch::Matchers::Contains;
using nlohmann::json;

constexpr absl::Duration kWhole = absl::Seconds(60);
constexpr absl::Duration kCleanEnd = absl::Seconds(2);
constexpr int kForeverSteps = 1'000'000;
// Seconds: a job that is still there when its step 50 has been seen.
constexpr int kManySteps = 400;
constexpr absl::Duration kSlowStep = absl::Milliseconds(10);

TEST_CASE("when the job is done every process exits 0 within 2 seconds, unasked") {
  Cluster cluster(2, 3);
  // So short that two workers may end it before the third has met the chief.
  cluster.StartAll({.max_steps = 60, .sync = "replicas_to_aggregate: 2"});
  CHECK(cluster.chief().Wait(kWhole) == 0);
  const absl::Time deadline = absl::Now() + kCleanEnd;
  INFO(cluster.Logs());
  for (int i = 0; i < 2; ++i) CHECK(cluster.ps(i).Wait(deadline - absl::Now()) == 0);
  for (int i = 0; i < 3; ++i) CHECK(cluster.worker(i).Wait(deadline - absl::Now()) == 0);
  const json summary = json::parse(cluster.Summary());
  CHECK(summary["steps"] == 60);
  CHECK(summary["test_accuracy"] > 0.8);
}

TEST_CASE("a worker killed in mid-run is the backup's turn: the job finishes") {
  Cluster cluster(2, 3);
  cluster.SlowDown(kSlowStep);
  cluster.StartAll({.max_steps = kManySteps, .sync = "replicas_to_aggregate: 2"});
  REQUIRE(cluster.WaitForStep(50, kWhole));
  cluster.worker(1).Signal(SIGKILL);
  CHECK(cluster.chief().Wait(kWhole) == 0);
  const absl::Time deadline = absl::Now() + kCleanEnd;
  INFO(cluster.Logs());
  for (int i : {0, 2}) {
    CHECK(cluster.worker(i).Wait(deadline - absl::Now()) == 0);
    CHECK_THAT(cluster.worker(i).Output(), Contains("the job is done"));
  }
  for (int i = 0; i < 2; ++i) CHECK(cluster.ps(i).Wait(deadline - absl::Now()) == 0);
  CHECK(json::parse(cluster.Summary())["steps"] == kManySteps);
}

TEST_CASE("without a backup a killed worker is named, by status and log, within 15 seconds") {
  Cluster cluster(1, 2);
  cluster.StartAll({.max_steps = kForeverSteps});
  REQUIRE(cluster.WaitForStep(20, kWhole));
  cluster.worker(1).Signal(SIGKILL);
  CHECK(cluster.chief().WaitForOutput("worker 1", absl::Seconds(15)));
  const absl::Time deadline = absl::Now() + absl::Seconds(15);
  std::string waiting_for;
  while (waiting_for.find("worker 1") == std::string::npos && absl::Now() < deadline &&
         !cluster.chief().Wait(absl::Milliseconds(100))) {
    const auto status = FetchStatus(cluster.spec().chief, absl::Seconds(2));
    if (status.ok()) waiting_for = status->waiting_for();
  }
  CHECK_THAT(waiting_for, Contains("worker 1"));
}

TEST_CASE("a needed worker that was killed and is started again goes on where the job is") {
  Cluster cluster(1, 2);
  cluster.SlowDown(kSlowStep);
  cluster.StartAll({.max_steps = kManySteps});
  REQUIRE(cluster.WaitForStep(20, kWhole));
  cluster.worker(1).Signal(SIGKILL);
  REQUIRE(cluster.worker(1).Wait(absl::Seconds(5)) == 137);
  Process successor(cluster.Worker(1));
  CHECK(cluster.chief().Wait(kWhole) == 0);
  const auto code = successor.Wait(kCleanEnd);
  INFO(cluster.Logs() << "successor:\n" << successor.Output());
  CHECK(code == 0);
  CHECK(json::parse(cluster.Summary())["steps"] == kManySteps);
}

TEST_CASE("each process that is told to end by SIGTERM does so within 5 seconds with code 143") {
  const auto ends = [](auto choose) {
    Cluster cluster(1, 2);
    cluster.StartAll({.max_steps = kForeverSteps});
    REQUIRE(cluster.WaitForStep(5, kWhole));
    Process& process = choose(cluster);
    process.Signal(SIGTERM);
    const auto code = process.Wait(absl::Seconds(5));
    INFO(process.Output());
    CHECK(code == 143);
  };
  ends([](Cluster& cluster) -> Process& { return cluster.ps(0); });
  ends([](Cluster& cluster) -> Process& { return cluster.worker(0); });
  ends([](Cluster& cluster) -> Process& { return cluster.chief(); });
}

TEST_CASE("processes configured by nothing but TF_CONFIG run the job") {
  Cluster cluster(1, 2);
  const std::string job = cluster.WriteJob({});
  const auto config = [&](const std::string& type, int index) {
    const json config = {{"cluster",
                          {{"ps", cluster.spec().ps},
                           {"worker", cluster.spec().workers},
                           {"chief", {cluster.spec().chief}}}},
                         {"task", {{"type", type}, {"index", index}}}};
    return std::vector<std::string>{"TF_CONFIG=" + config.dump()};
  };
  Process ps({Binary("ps/ps")}, config("ps", 0));
  Process worker0({Binary("worker/worker"), "--threads=1"}, config("worker", 0));
  Process worker1({Binary("worker/worker"), "--threads=1"}, config("worker", 1));
  Process chief({Binary("chief/chief"), "--job=" + job}, config("chief", 0));
  for (Process* process : {&chief, &ps, &worker0, &worker1}) {
    const auto code = process->Wait(kWhole);
    INFO(process->Output());
    CHECK(code == 0);
  }
}

TEST_CASE("status shows job, workers and shards of a running job, and says when nobody answers") {
  Cluster cluster(2, 2);
  cluster.StartAll({.max_steps = kForeverSteps});
  REQUIRE(cluster.WaitForStep(5, kWhole));
  const std::string status = Binary("deploy/cli/status");
  const Ended chief = RunToEnd({status, cluster.spec().chief}, absl::Seconds(10));
  CHECK(chief.exit_code == 0);
  CHECK_THAT(chief.output, Contains("chief 0: training") && Contains("of 1,000,000"));
  CHECK_THAT(chief.output, Contains(cluster.spec().workers[1]) && Contains(cluster.spec().ps[1]));
  CHECK_THAT(RunToEnd({status, cluster.spec().ps[0]}, absl::Seconds(10)).output,
             Contains("ps 0") && Contains("variables"));
  CHECK_THAT(RunToEnd({status, cluster.spec().workers[1]}, absl::Seconds(10)).output,
             Contains("worker 1") && Contains("examples"));
  const Ended as_json = RunToEnd({status, cluster.spec().chief, "--json"}, absl::Seconds(10));
  CHECK(json::parse(as_json.output)["job"]["members"].size() == 2);

  cluster.chief().Signal(SIGKILL);
  cluster.chief().Wait(absl::Seconds(5));
  const Ended gone = RunToEnd({status, cluster.spec().chief}, absl::Seconds(10));
  CHECK(gone.exit_code == 138);
  CHECK_THAT(gone.output, Contains(cluster.spec().chief));
  CHECK(RunToEnd({status, "nonsense"}, absl::Seconds(10)).exit_code == 64);
}

TEST_CASE("Ctrl-C at any moment of a real run leaves no process behind and exits 130") {
  std::minstd_rand random(3);
  for (int round = 0; round < 6; ++round) {
    const Cluster cluster(1, 1);
    const std::string job =
        cluster.WriteJob({.max_steps = kForeverSteps, .more = "local { ps: 2 workers: 3 }"});
    Process up({Binary("deploy/cli/up"), "--job=" + job, "--bin_dir=" + Binary(""),
                "--run_dir=" + cluster.folder().Path("run")});
    CHECK_FALSE(up.Wait(absl::Milliseconds(random() % 3000)));
    up.Signal(SIGINT);
    const auto code = up.Wait(absl::Seconds(10));
    INFO(up.Output());
    CHECK(code == 130);
    CHECK(ProcessesWith(cluster.folder().path()).empty());
  }
}

TEST_CASE("a job launched by up ends with a checkpoint that predict and evaluate use alone") {
  const Cluster cluster(1, 1);
  const std::string job = cluster.WriteJob(
      {.checkpoint = absl::StrCat("folder: '", cluster.folder().Path("checkpoints"), "'"),
       .more = "local { ps: 2 workers: 2 }"});
  const std::string summary_path = cluster.folder().Path("up.json");
  const Ended up = RunToEnd({Binary("deploy/cli/up"), "--job=" + job, "--bin_dir=" + Binary(""),
                             "--run_dir=" + cluster.folder().Path("run"), "--json=" + summary_path},
                            kWhole);
  INFO(up.output);
  REQUIRE(up.exit_code == 0);
  const json summary = json::parse(cluster.folder().Read("up.json"));
  CHECK_THAT(up.output, Contains("trained 60 steps") && Contains("test accuracy"));

  const std::string result_path = cluster.folder().Path("result.json");
  const Ended evaluate = RunToEnd(
      {Binary("worker/predict"), "evaluate", "--threads=1",
       "--checkpoint=" + summary["checkpoint"].get<std::string>(), "--json=" + result_path},
      absl::Seconds(30));
  INFO(evaluate.output);
  REQUIRE(evaluate.exit_code == 0);
  CHECK(json::parse(cluster.folder().Read("result.json"))["accuracy"] == summary["test_accuracy"]);
}

}  // namespace
}  // namespace lockstep::test
