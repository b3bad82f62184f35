// Replicated training in real processes while members are lost: every run ends with the bits of one
// that nothing disturbed.
#include <signal.h>

#include <catch2/catch.hpp>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "common/client/status_client.h"
#include "tests/integration/training_run.h"

namespace lockstep::test {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

constexpr absl::Duration kPatience = absl::Seconds(60);
constexpr int kWorkers = 3;
constexpr int kSteps = 320;
constexpr int kLong = 500;  // the job must not end while a process starts
constexpr absl::Duration kSlowStep = absl::Milliseconds(5);
const std::vector<std::string> kFlags = {"--lease=2"};

JobText Job(const std::string& checkpoints) {
  return {.global_batch = 24,
          .max_steps = kSteps,
          .optimizer = "adam {} learning_rate { base: 0.001 } variable_averages { decay: 0.99 }",
          .checkpoint = absl::StrCat("folder: '", checkpoints, "' every_steps: 40"),
          .more = "strategy { replicated {} } "};
}

// A cluster whose processes are killed, and started again.
class Disturbed {
 public:
  // `slow_step`: as Cluster::SlowDown.
  explicit Disturbed(int steps, absl::Duration slow_step = kSlowStep)
      : Disturbed(steps, "every_steps: 40", "", slow_step) {}
  Disturbed(int steps, const std::string& checkpoint, const std::string& evaluation,
            absl::Duration slow_step = kSlowStep)
      : cluster_(2, kWorkers), steps_(steps) {
    cluster_.SlowDown(slow_step);
    JobText job = Job(cluster_.folder().Path("checkpoints"));
    job.max_steps = steps;
    job.evaluation = evaluation;
    job.checkpoint = absl::StrReplaceAll(job.checkpoint, {{"every_steps: 40", checkpoint}});
    cluster_.StartAll(job, kFlags);
  }

  bool WaitForStep(int64_t step) { return cluster_.WaitForStep(step, kPatience); }
  void KillWorkers(const std::vector<int>& workers) {
    for (const int worker : workers) Kill(&cluster_.worker(worker));
    for (const int worker : workers) cluster_.StartWorker(worker);
  }
  void KillChief() {
    Kill(&cluster_.chief());
    cluster_.StartChief(kFlags);
  }

  // The losses that the last chief has seen.
  std::vector<double> Finish() { return Losses(test::Finish(cluster_)); }
  std::map<std::string, std::string> tensors() const {
    return TensorsOf(cluster_.folder().Path(absl::StrCat("checkpoints/ckpt-", steps_)));
  }

 private:
  static void Kill(Process* process) {
    process->Signal(SIGKILL);
    REQUIRE(process->Wait(kPatience) == 137);
  }

  Cluster cluster_;
  const int steps_;
};

// Of a run that nothing disturbs.
struct Calm {
  Calm() {
    Disturbed run(kSteps, absl::ZeroDuration());
    losses = run.Finish();
    tensors = run.tensors();
  }
  std::vector<double> losses;
  std::map<std::string, std::string> tensors;
};

TEST_CASE("workers that are killed again and again, and the chief, change no bit") {
  static const Calm calm;
  REQUIRE(calm.losses.size() == kSteps);
  REQUIRE(calm.tensors.size() > 12);

  SECTION("eight times, at pseudorandom moments, the first worker and two at once among them") {
    std::mt19937 random(1);
    Disturbed run(kSteps);
    int64_t step = 0;
    for (const std::vector<int>& victims :
         std::vector<std::vector<int>>{{1}, {0}, {2}, {0, 1}, {1}, {0}, {2, 1}, {0}}) {
      REQUIRE(run.WaitForStep(step += std::uniform_int_distribution(15, 38)(random)));
      run.KillWorkers(victims);
    }
    CHECK(run.Finish() == calm.losses);
    CHECK(run.tensors() == calm.tensors);
  }
  SECTION("the chief alone, and together with a worker") {
    Disturbed run(kSteps);
    REQUIRE(run.WaitForStep(60));
    run.KillChief();
    REQUIRE(run.WaitForStep(160));
    run.KillWorkers({0});
    run.KillChief();
    run.Finish();
    CHECK(run.tensors() == calm.tensors);
  }
}

TEST_CASE("the next worker stores the versions that the first one had to") {
  // Each version is evaluated, so one is always to be stored, by the first worker that lives.
  constexpr int kShort = 120;
  const auto disturbed = [](bool is_killed) {
    Disturbed run(kShort, "every_steps: 40", "every_steps: 1");
    for (int step = 20; is_killed && step < kShort; step += 30) {
      REQUIRE(run.WaitForStep(step));
      run.KillWorkers({0});
    }
    const std::vector<double> losses = run.Finish();
    return std::pair(losses, run.tensors());
  };
  const auto undisturbed = disturbed(false);
  REQUIRE(undisturbed.first.size() == kShort);
  CHECK(disturbed(true) == undisturbed);
}

// Whether a worker of the group has said that worker 1 is silent, or has the sum of its step: then
// it needs no message of worker 1, and the chief alone knows whom its token waits for.
bool NamesWorker1OrHasSum(Cluster& cluster, int worker) {
  if (absl::StrContains(cluster.worker(worker).Output(), "worker 1 (")) return true;
  const auto status = FetchStatus(cluster.spec().workers[worker], absl::Seconds(1));
  return status.ok() && absl::StartsWith(status->waiting_for(), "the other workers (step ");
}

TEST_CASE("a worker that hangs is named within 8 s, and its successor takes over") {
  Cluster cluster(1, kWorkers);
  cluster.SlowDown(kSlowStep);
  cluster.StartAll(Job(cluster.folder().Path("checkpoints")));
  REQUIRE(cluster.WaitForStep(50, kPatience));
  cluster.worker(1).Signal(SIGSTOP);
  const absl::Time deadline = absl::Now() + absl::Seconds(8);
  CHECK(cluster.chief().WaitForOutput("worker 1 (", deadline - absl::Now()));
  CHECK(cluster.chief().WaitForOutput("is lost: silent", deadline - absl::Now()));
  for (const int other : {0, 2}) {
    CAPTURE(other);
    bool is_told = false;
    while (!(is_told = NamesWorker1OrHasSum(cluster, other)) && absl::Now() < deadline) {
      cluster.chief().Wait(absl::Milliseconds(20));
    }
    INFO(cluster.Logs());
    CHECK(is_told);
  }
  cluster.worker(1).Signal(SIGKILL);
  cluster.StartWorker(1);
  CHECK(Losses(Finish(cluster)).size() == kSteps);
}

TEST_CASE("with SHRINK the others go on without a lost worker, and with its successor") {
  Cluster cluster(2, 3);
  JobText job = Job(cluster.folder().Path("checkpoints"));
  job.sync = "quorum_policy: SHRINK";
  job.max_steps = kLong;
  cluster.SlowDown(kSlowStep);
  cluster.StartAll(job, kFlags);
  REQUIRE(cluster.WaitForStep(50, kPatience));
  cluster.worker(0).Signal(SIGKILL);
  REQUIRE(cluster.worker(0).Wait(kPatience) == 137);
  REQUIRE(cluster.WaitForStep(100, kPatience));
  cluster.worker(2).Signal(SIGKILL);
  REQUIRE(cluster.worker(2).Wait(kPatience) == 137);
  REQUIRE(cluster.WaitForStep(150, kPatience));
  for (const int worker : {2, 0}) cluster.StartWorker(worker);
  const std::vector<double> losses = Losses(Finish(cluster));
  REQUIRE(losses.size() == kLong);
  CHECK(losses.back() < 0.5);
  CHECK_THAT(cluster.Logs(),
             Contains("gradients of 1 workers") && Contains("gradients of 2 workers"));
}

TEST_CASE("with ABORT a lost worker ends the job with 138, and is named") {
  // The second ps has only what workers store.
  const int ps = GENERATE(1, 2);
  Cluster cluster(ps, 2);
  JobText job = Job(cluster.folder().Path("checkpoints"));
  job.max_steps = 1'000'000;
  job.sync = "quorum_policy: ABORT";
  cluster.StartAll(job, kFlags);
  REQUIRE(cluster.WaitForStep(50, kPatience));
  cluster.worker(1).Signal(SIGKILL);
  // Beyond the lease, and without the 20 s of --drain: only the lost worker had the next version.
  CHECK(cluster.chief().Wait(absl::Seconds(15)) == 138);
  CHECK_THAT(cluster.chief().Output(),
             Contains(": worker 1 (") && Contains("was lost") &&
                 Contains("too few workers live to make the next version"));
  CHECK(cluster.worker(0).Wait(kPatience) == 138);
}

TEST_CASE("a replicated job that is told to end is saved, whichever ps has the loss") {
  const int ps = GENERATE(1, 2, 3);
  CAPTURE(ps);
  Cluster cluster(ps, 2);
  JobText job = Job(cluster.folder().Path("checkpoints"));
  job.max_steps = 1'000'000;
  job.checkpoint = absl::StrCat("folder: '", cluster.folder().Path("checkpoints"), "'");
  cluster.StartAll(job);
  REQUIRE(cluster.WaitForStep(50, kPatience));
  cluster.chief().Signal(SIGINT);
  const auto code = cluster.chief().Wait(kPatience);
  INFO(cluster.Logs());
  CHECK(code == 130);
  CHECK_THAT(cluster.folder().Read("checkpoints/LATEST"), StartsWith("ckpt-"));
  for (int i = 0; i < 2; ++i) CHECK(cluster.worker(i).Wait(kPatience) == 130);
}

TEST_CASE("when every worker is lost, the job ends with 138, and --resume goes on") {
  Cluster cluster(1, 2);
  JobText job = Job(cluster.folder().Path("checkpoints"));
  job.max_steps = 1'000'000;
  cluster.StartAll(job, {"--lease=2"});
  REQUIRE(cluster.WaitForStep(100, kPatience));
  for (int i = 0; i < 2; ++i) cluster.worker(i).Signal(SIGKILL);
  CHECK(cluster.chief().Wait(kPatience) == 138);
  CHECK_THAT(cluster.Logs(), Contains("every worker that had the variables"));
  CHECK(cluster.ps(0).Wait(kPatience).has_value());

  job.max_steps = 200;
  cluster.StartAll(job, {"--resume"});
  Finish(cluster);
  CHECK_THAT(cluster.Logs(), Contains("restored from"));
}

}  // namespace
}  // namespace lockstep::test
