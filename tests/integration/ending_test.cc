// How real jobs end before their last step: what is saved, who ends, who waits for the next chief.
#include <signal.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/checkpoint/checkpoint.h"
#include "common/client/status_client.h"
#include "tests/integration/cluster.h"
#include "tests/support/process.h"
#include "tests/support/wait.h"

namespace lockstep::test {
namespace {

using Catch::Matchers::Contains;
using nlohmann::json;

constexpr absl::Duration kWhole = absl::Seconds(60);
constexpr absl::Duration kEnd = absl::Seconds(10);
constexpr int kForeverSteps = 1'000'000;

// Saves at the end only.
JobText Job(int max_steps, const Cluster& cluster) {
  return {.max_steps = max_steps,
          .checkpoint = absl::StrCat("folder: '", cluster.folder().Path("checkpoints"), "'")};
}

// The step of the newest checkpoint that verifies; -1: there is none.
int64_t SavedStep(const Cluster& cluster) {
  const auto folder = ResolveCheckpoint(cluster.folder().Path("checkpoints"));
  return folder.ok() ? ReadManifest(*folder)->step : -1;
}

TEST_CASE("a chief that is told to end saves, and leaves ps and workers to its successor") {
  json summaries[2];
  for (const bool told : {false, true}) {
    Cluster cluster(2, 2);
    cluster.StartAll(Job(400, cluster));
    Process* chief = &cluster.chief();
    std::unique_ptr<Process> successor;
    if (told) {
      REQUIRE(cluster.WaitForStep(20, kWhole));
      chief->Signal(SIGTERM);
      const auto code = chief->Wait(kEnd);
      INFO(cluster.Logs());
      REQUIRE(code == 143);
      CHECK(SavedStep(cluster) > 20);
      for (int i = 0; i < 2; ++i) CHECK(cluster.ps(i).running());
      for (int i = 0; i < 2; ++i) CHECK(cluster.worker(i).running());
      successor = std::make_unique<Process>(cluster.Chief(cluster.folder().Path("job.textproto")));
      chief = successor.get();
    }
    const auto code = chief->Wait(kWhole);
    INFO(cluster.Logs() << "successor:\n" << chief->Output());
    REQUIRE(code == 0);
    for (int i = 0; i < 2; ++i) CHECK(cluster.worker(i).Wait(kEnd) == 0);
    for (int i = 0; i < 2; ++i) CHECK(cluster.ps(i).Wait(kEnd) == 0);
    summaries[told] = json::parse(cluster.Summary());
  }
  CHECK(summaries[0]["steps"] == summaries[1]["steps"]);
  CHECK(summaries[0]["test_loss"] == summaries[1]["test_loss"]);
}

TEST_CASE("a job whose processes are all told to end at once is saved") {
  Cluster cluster(2, 2);
  cluster.StartAll(Job(kForeverSteps, cluster));
  REQUIRE(cluster.WaitForStep(20, kWhole));
  for (int i = 0; i < 2; ++i) {
    cluster.worker(i).Signal(SIGTERM);
    cluster.ps(i).Signal(SIGTERM);
  }
  cluster.chief().Signal(SIGTERM);
  const auto code = cluster.chief().Wait(kEnd);
  for (int i = 0; i < 2; ++i) {
    CHECK(cluster.worker(i).Wait(kEnd) == 143);
    CHECK(cluster.ps(i).Wait(kEnd) == 143);
  }
  INFO(cluster.Logs());
  CHECK(code == 143);
  CHECK(SavedStep(cluster) > 20);
}

bool AwaitWait(Cluster& cluster, int worker, const std::string& what) {
  const absl::Time deadline = absl::Now() + kWhole;
  while (absl::Now() < deadline) {
    const auto status = FetchStatus(cluster.spec().workers[worker], absl::Seconds(1));
    if (status.ok() && absl::StartsWith(status->waiting_for(), what)) return true;
    cluster.chief().Wait(absl::Milliseconds(20));
  }
  return false;
}

TEST_CASE("a worker that is told to end finishes the push of which a ps has a part") {
  Cluster cluster(2, 2);
  JobText job = Job(kForeverSteps, cluster);
  job.sync = "token_policy: FIFO";
  cluster.StartAll(job, {}, /*workers=*/1);
  cluster.SlowDown(absl::Seconds(1));
  cluster.StartWorker(1);
  REQUIRE(cluster.WaitForStep(2, kWhole));
  // In the middle of a step, when both workers have its values: while the second one sleeps.
  REQUIRE(AwaitWait(cluster, 0, "the other workers"));
  cluster.ps(1).Signal(SIGSTOP);
  REQUIRE(AwaitWait(cluster, 1, "the ps to take the gradient"));
  // The other ps has closed its part of the step, so that no earlier one can be saved.
  for (int i = 0; i < 2; ++i) {
    cluster.worker(i).Signal(SIGTERM);
    cluster.ps(i).Signal(SIGTERM);
  }
  cluster.chief().Signal(SIGTERM);
  CHECK(cluster.worker(1).Wait(absl::Milliseconds(300)) == std::nullopt);
  cluster.ps(1).Signal(SIGCONT);
  const auto code = cluster.chief().Wait(kEnd);
  for (int i = 0; i < 2; ++i) CHECK(cluster.worker(i).Wait(kEnd) == 143);
  INFO(cluster.Logs());
  CHECK(code == 143);
  CHECK(SavedStep(cluster) > 2);
}

TEST_CASE("an asynchronous job is saved when its chief is told to end") {
  Cluster cluster(2, 2);
  JobText job = Job(kForeverSteps, cluster);
  job.sync = "asynchronous {}";
  cluster.StartAll(job);
  REQUIRE(cluster.WaitForStep(20, kWhole));
  cluster.chief().Signal(SIGTERM);
  const auto code = cluster.chief().Wait(kEnd);
  INFO(cluster.Logs());
  CHECK(code == 143);
  CHECK(SavedStep(cluster) > 20);
}

TEST_CASE("an interrupted chief saves and ends the job") {
  Cluster cluster(2, 2);
  cluster.StartAll(Job(kForeverSteps, cluster));
  REQUIRE(cluster.WaitForStep(20, kWhole));
  cluster.chief().Signal(SIGINT);
  const auto code = cluster.chief().Wait(kEnd);
  for (int i = 0; i < 2; ++i) {
    CHECK(cluster.worker(i).Wait(kEnd) == 130);
    CHECK(cluster.ps(i).Wait(kEnd).has_value());
  }
  INFO(cluster.Logs());
  CHECK(code == 130);
  CHECK(SavedStep(cluster) > 20);
}

TEST_CASE("without a checkpoint folder a chief that is told to end says that nothing is saved") {
  Cluster cluster(1, 1);
  cluster.StartAll({.max_steps = kForeverSteps});
  REQUIRE(cluster.WaitForStep(20, kWhole));
  cluster.chief().Signal(SIGTERM);
  CHECK(cluster.chief().Wait(kEnd) == 143);
  CHECK_THAT(cluster.chief().Output(), Contains("nothing is saved: the job has no checkpoint"));
  CHECK(cluster.ps(0).running());
  CHECK(cluster.worker(0).running());
}

TEST_CASE("Ctrl-C of a launched job leaves a checkpoint of what was trained") {
  Cluster cluster(1, 1);
  JobText text = Job(kForeverSteps, cluster);
  text.more = "local { ps: 2 workers: 2 }";
  const std::string run = cluster.folder().Path("run");
  std::filesystem::create_directories(run + "/logs");  // to be watched
  Process up({Binary("deploy/cli/up"), "--job=" + cluster.WriteJob(text), "--bin_dir=" + Binary(""),
              "--run_dir=" + run});
  REQUIRE(WaitForText(run + "/logs/chief.log", " of 1,000,000, loss", kWhole));
  up.Signal(SIGINT);
  const auto code = up.Wait(absl::Seconds(20));
  INFO(up.Output() << cluster.folder().Read("run/logs/chief.log"));
  CHECK(code == 130);
  CHECK(SavedStep(cluster) > 0);
  CHECK(ProcessesWith(cluster.folder().path()).empty());
}

TEST_CASE("a model that could not be saved at the end stays at the ps for the next chief") {
  Cluster cluster(2, 1);
  const std::string in_the_way = cluster.folder().Write("checkpoints/ckpt-60", "a file");
  cluster.StartAll(Job(60, cluster), {"--start_timeout=3"});
  const auto code = cluster.chief().Wait(kWhole);
  INFO(cluster.Logs());
  CHECK(code == 138);
  CHECK_THAT(cluster.chief().Output(),
             Contains("expected a folder") && Contains("The ps keep the model. Remedy: "));
  CHECK(cluster.worker(0).Wait(kEnd) == 138);
  for (int i = 0; i < 2; ++i) CHECK(cluster.ps(i).running());

  std::filesystem::remove(in_the_way);
  Process worker(cluster.Worker(0));
  Process successor(cluster.Chief(cluster.folder().Path("job.textproto")));
  const auto second = successor.Wait(kWhole);
  INFO(successor.Output());
  CHECK(second == 0);
  CHECK(SavedStep(cluster) == 60);
  for (int i = 0; i < 2; ++i) CHECK(cluster.ps(i).Wait(kEnd) == 0);
}

}  // namespace
}  // namespace lockstep::test
