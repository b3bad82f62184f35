// Chiefs that stand by, in real processes: the one that commands is killed, stopped or told to end,
// and training goes on to the bits of a run that nothing disturbs.
#include <signal.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/checkpoint/earlier_runs.h"
#include "common/checkpoint/owner.h"
#include "common/client/ps_control.h"
#include "common/client/status_client.h"
#include "tests/chaos/status_reader.h"
#include "tests/integration/training_run.h"
#include "tests/support/await.h"
#include "tests/support/wait.h"

namespace lockstep::test {
namespace {

using Catch::Matchers::Contains;

constexpr absl::Duration kWhole = absl::Seconds(60);
constexpr absl::Duration kEnd = absl::Seconds(10);
constexpr absl::Duration kNextLook = absl::Milliseconds(2);
constexpr int kForeverSteps = 1'000'000;
constexpr int kFirstSteps = 100;  // of each job, before anything happens to it
const std::vector<std::string> kFlags = {"--lease=2", "--record_losses"};

absl::Duration Now() { return Clock::Real()->Monotonic(); }

// A job with two ps, two workers that are both needed, and `chiefs` chiefs. Its workers start when
// all chiefs run, so that no step is made while a chief starts.
class Job {
 public:
  explicit Job(int max_steps, int chiefs = 2, bool has_token = false, const std::string& more = "")
      : cluster(2, 2, chiefs) {
    if (has_token) cluster.UseToken();
    ps_0_.emplace(cluster.spec().ps[0], cluster.credentials());
    cluster.StartAll({.max_steps = max_steps,
                      .optimizer = "adam {} learning_rate { base: 0.001 }",
                      .checkpoint = absl::StrCat("folder: '", folder(), "' every_steps: 100000"),
                      .more = more},
                     kFlags, /*workers=*/0);
    for (int chief = 1; chief < chiefs; ++chief) StandBy(chief);
    for (int i = 0; i < 2; ++i) cluster.StartWorker(i);
    REQUIRE(cluster.WaitForStep(kFirstSteps, kWhole));
  }

  std::string folder() const { return cluster.folder().Path("checkpoints"); }
  void StandBy(int chief) {
    cluster.StartStandby(chief, kFlags);
    REQUIRE(cluster.chief(chief).WaitForOutput(" commands, with a lease of 2.0 s", kWhole));
  }
  // Steps that ps 0 has closed.
  std::optional<int64_t> ClosedSteps() {
    const auto status = ps_0_->Read(absl::Seconds(2));
    if (!status.ok()) return std::nullopt;
    return status->shard().shard_step();
  }
  // Gives the processes the CPU, then looks at them again.
  void WaitForNextLook() { cluster.ps(0).Wait(kNextLook); }
  // From now on, until `chief` commands and steps close again: the longest time without a step.
  absl::Duration LongestPause(int chief) {
    const absl::Duration start = Now();
    absl::Duration longest, last_step = start;
    std::optional<int64_t> step = ClosedSteps();
    bool is_over = false;
    while (Now() - start < kEnd) {
      WaitForNextLook();
      const std::optional<int64_t> next = ClosedSteps();
      if (!next.has_value() || next == step) continue;
      step = next;
      longest = std::max(longest, Now() - last_step);
      last_step = Now();
      if (is_over) return longest;
      // One more step after the line that says so.
      is_over = cluster.chief(chief).WaitForOutput("taking over at step", absl::ZeroDuration());
    }
    return absl::InfiniteDuration();
  }
  void CheckEndsWell(int chief) {
    const auto code = cluster.chief(chief).Wait(kWhole);
    INFO(cluster.Logs());
    CHECK(code == 0);
    for (int i = 0; i < 2; ++i) {
      CHECK(cluster.worker(i).Wait(kEnd) == 0);
      CHECK(cluster.ps(i).Wait(kEnd) == 0);
    }
  }

  Cluster cluster;

 private:
  std::optional<StatusReader> ps_0_;
};

// What a run comes to that nothing disturbs.
struct Calm {
  explicit Calm(int steps, const std::string& more = "") {
    Job job(steps, 1, false, more);
    job.CheckEndsWell(0);
    losses = Losses(nlohmann::json::parse(job.cluster.Summary()));
    tensors = TensorsOf(absl::StrCat(job.folder(), "/ckpt-", steps));
  }
  std::vector<double> losses;
  std::map<std::string, std::string> tensors;
};

constexpr int kSteps = 1000;
const Calm& CalmRun() {
  static const Calm calm(kSteps);
  return calm;
}

// The standby's losses are those of the calm run from the step at which it took over, and the
// model is the same.
void CheckSameBits(Job* job, int chief, const Calm& calm) {
  const auto summary = nlohmann::json::parse(job->cluster.Summary(chief));
  const std::vector<double> losses = Losses(summary);
  const int64_t start = summary["start_step"];
  CHECK(start >= kFirstSteps);
  REQUIRE(losses.size() == calm.losses.size() - start);
  CHECK(std::equal(losses.begin(), losses.end(), calm.losses.begin() + start));
  CHECK(TensorsOf(absl::StrCat(job->folder(), "/ckpt-", calm.losses.size())) == calm.tensors);
}

TEST_CASE("a standby takes the place of a killed chief within a lease, and no bit changes") {
  CalmRun();
  const bool has_token = GENERATE(false, true);
  CAPTURE(has_token);
  Job job(kSteps, 2, has_token);
  job.cluster.chief(0).Signal(SIGKILL);
  const absl::Duration pause = job.LongestPause(1);
  CHECK(pause <= absl::Seconds(3));
  job.CheckEndsWell(1);
  CHECK_THAT(job.cluster.chief(1).Output(),
             Contains("taking command: chief 0 (") &&
                 Contains("has been silent for longer than its lease of 2.0 s"));
  CheckSameBits(&job, 1, CalmRun());
  // As the same processes.
  for (int i = 0; i < 2; ++i) {
    CHECK_THAT(job.cluster.worker(i).Output(), !Contains("joining anew"));
  }
}

TEST_CASE("a worker that is killed with the chief and started again costs no second lease") {
  CalmRun();
  Job job(kSteps);
  job.cluster.chief(0).Signal(SIGKILL);
  job.cluster.worker(1).Signal(SIGKILL);
  REQUIRE(job.cluster.worker(1).Wait(kEnd) == 137);
  job.cluster.StartWorker(1);
  const absl::Duration pause = job.LongestPause(1);
  INFO(job.cluster.Logs());
  CHECK(pause <= absl::Seconds(3));
  job.CheckEndsWell(1);
  CheckSameBits(&job, 1, CalmRun());
  CHECK_THAT(job.cluster.worker(0).Output(), !Contains("joining anew"));
}

TEST_CASE("a chief that is told to end leaves at once to its standby") {
  CalmRun();
  Job job(kSteps);
  job.cluster.chief(0).Signal(SIGTERM);
  const absl::Duration pause = job.LongestPause(1);
  CHECK(pause < absl::Seconds(1));
  CHECK(job.cluster.chief(0).Wait(kEnd) == 143);
  job.CheckEndsWell(1);
  CHECK_THAT(job.cluster.chief(1).Output(), Contains("has ended and leaves the job to the next"));
  CheckSameBits(&job, 1, CalmRun());
}

TEST_CASE(
    "workers that keep the variables go on with the standby, which has no checkpoint to read") {
  constexpr char kReplicated[] = "strategy { replicated {} }";
  constexpr int kReplicatedSteps = 600;
  const Calm calm(kReplicatedSteps, kReplicated);
  Job job(kReplicatedSteps, 2, false, kReplicated);
  job.cluster.chief(0).Signal(SIGKILL);
  CHECK(job.LongestPause(1) <= absl::Seconds(3));
  job.CheckEndsWell(1);
  CheckSameBits(&job, 1, calm);
}

TEST_CASE("a chief that was stopped finds its standby in its place, and harms nothing") {
  Job job(kForeverSteps);
  job.cluster.chief(0).Signal(SIGSTOP);
  const absl::Duration pause = job.LongestPause(1);
  CHECK(pause <= absl::Seconds(3));
  const auto owner = ReadOwner(job.folder());
  REQUIRE(owner.ok());
  // Workers do not wait for the one that is stopped either.
  for (int i = 0; i < 2; ++i) {
    CHECK(job.cluster.worker(i).WaitForOutput("the chief at " + job.cluster.spec().other_chiefs[0],
                                              kEnd));
  }
  job.cluster.chief(0).Signal(SIGCONT);
  CHECK(job.cluster.chief(0).Wait(kEnd) == 80);
  CHECK_THAT(job.cluster.chief(0).Output(), Contains("another one has its place"));
  CHECK(*ReadOwner(job.folder()) == *owner);
  const auto closed = job.ClosedSteps();
  CHECK(job.cluster.WaitForStep(closed.value() + 100, kWhole, 1));
  INFO(job.cluster.Logs());
  CHECK_THAT(job.cluster.chief(1).Output(), !Contains("is lost: silent"));
}

TEST_CASE("of two standbys one takes over, and the other stands by for that one") {
  Job job(kForeverSteps, 3);
  job.cluster.chief(0).Signal(SIGKILL);
  const auto commands = [&](int chief) {
    return job.cluster.chief(chief).WaitForOutput("taking over at step", absl::ZeroDuration());
  };
  const absl::Duration start = Now();
  while (!commands(1) && !commands(2) && Now() - start < kEnd) job.WaitForNextLook();
  const int first = commands(1) ? 1 : 2;
  const int second = 3 - first;
  const std::string standing_by = absl::StrCat("standing by: chief ", first, " (");
  INFO(job.cluster.Logs());
  REQUIRE(job.cluster.chief(second).WaitForOutput(standing_by, kEnd));
  CHECK_FALSE(commands(second));
  job.cluster.chief(first).Signal(SIGKILL);
  CHECK(job.LongestPause(second) <= absl::Seconds(3));
  job.cluster.chief(second).Signal(SIGINT);
  CHECK(job.cluster.chief(second).Wait(kEnd) == 130);
}

TEST_CASE("a standby ends with the job: well, or with the code that the job was given up with") {
  SECTION("it is done") {
    Job job(kSteps);
    job.CheckEndsWell(0);
    CHECK(job.cluster.chief(1).Wait(kEnd) == 0);
    // Also one that comes when all is over.
    job.cluster.StartStandby(1, kFlags);
    CHECK(job.cluster.chief(1).Wait(kEnd) == 0);
  }
  SECTION("it is interrupted") {
    Job job(kForeverSteps);
    job.cluster.chief(0).Signal(SIGINT);
    CHECK(job.cluster.chief(0).Wait(kEnd) == 130);
    CHECK(job.cluster.chief(1).Wait(kEnd) == 130);
    CHECK_THAT(job.cluster.chief(1).Output(), Contains("the job was given up: "));
  }
}

TEST_CASE("a standby that has no call at ps 0 as the job ends hears of it by its next one") {
  Cluster cluster(1, 1, 2);
  Process ps(cluster.Ps(0));
  REQUIRE(ps.WaitForOutput("listening", kWhole));
  const auto control = MakePsControl({.address = cluster.spec().ps[0], .name = "ps 0"});
  SetViewRequest view;
  view.mutable_command()->set_job(7);
  view.mutable_command()->set_term(1);
  view.mutable_command()->set_chief(5);
  view.set_epoch(1);
  view.set_cluster(cluster.spec().Canonical());
  view.set_lease_ms(2000);
  REQUIRE(CallAndWait(*control, kSetView, view).ok());
  WatchCommandRequest watch;
  watch.set_caller(9);
  const auto held = CallAndWait(*control, kWatchCommand, watch);
  REQUIRE(held.ok());
  CHECK(held->command().state() == CommandStatus::HELD);
  FinishRequest finish;
  *finish.mutable_command() = view.command();
  REQUIRE(CallAndWait(*control, kFinish, finish).ok());
  REQUIRE(ps.WaitForOutput("the job is done", kEnd));
  const auto over = CallAndWait(*control, kWatchCommand, watch);
  REQUIRE(over.ok());
  CHECK(over->command().state() == CommandStatus::JOB_OVER);
  CHECK(ps.Wait(kEnd) == 0);
}

TEST_CASE("a standby that is told to end leaves the job alone") {
  Job job(kForeverSteps);
  job.cluster.chief(1).Signal(SIGTERM);
  CHECK(job.cluster.chief(1).Wait(kEnd) == 143);
  const auto closed = job.ClosedSteps();
  CHECK(job.cluster.WaitForStep(closed.value() + 100, kWhole));
}

TEST_CASE("the status of a standby says for whom it stands by") {
  Job job(kForeverSteps);
  const Ended shown = RunToEnd({Binary("deploy/cli/status"), job.cluster.spec().other_chiefs[0]},
                               absl::Seconds(10));
  CHECK(shown.exit_code == 0);
  CHECK_THAT(shown.output, Contains("chief 1: standby\n") &&
                               Contains(absl::StrCat("chief 0 (", job.cluster.spec().chief,
                                                     ") commands, lease ")) &&
                               Contains(" of 2.0 s left\n"));
  const auto ps = FetchStatus(job.cluster.spec().ps[0], absl::Seconds(5));
  REQUIRE(ps.ok());
  CHECK(ps->shard().command().state() == "held");
  CHECK(ps->shard().command().address() == job.cluster.spec().chief);
}

// The process of a launched run that has this in its command line, and in `folder`.
pid_t Find(const std::string& folder, const std::string& program) {
  for (const pid_t pid : ProcessesWith(folder)) {
    std::ifstream file(absl::StrCat("/proc/", pid, "/cmdline"));
    const std::string command(std::istreambuf_iterator<char>(file), {});
    if (absl::StrContains(command, program)) return pid;
  }
  return 0;
}

TEST_CASE("a launched job goes on when its chief is killed, which then stands by") {
  Cluster cluster(1, 1);
  const std::string run = cluster.folder().Path("run");
  std::filesystem::create_directories(run + "/logs");  // to be watched
  Process up({Binary("deploy/cli/up"), "--standby", "--worker_sleeps=5ms,5ms",
              "--job=" + cluster.WriteJob({.max_steps = kForeverSteps,
                                           .checkpoint = absl::StrCat(
                                               "folder: '", cluster.folder().Path("checkpoints"),
                                               "' every_steps: 100000"),
                                           .more = "local { ps: 2 workers: 2 }"}),
              "--bin_dir=" + Binary(""), "--run_dir=" + run});
  const std::string first = run + "/logs/chief.log";
  const std::string second = run + "/logs/chief-1.log";
  REQUIRE(WaitForText(second, "standing by: chief 0 (", kWhole));
  REQUIRE(WaitForText(first, " of 1,000,000, loss", kWhole));
  const pid_t chief = Find(run, std::string("--task_index=0") + '\0' + "--job=");
  REQUIRE(chief > 0);
  kill(chief, SIGKILL);
  CHECK(WaitForText(second, "taking over at step", kEnd));
  CHECK(WaitForText(first, "standing by: chief 1 (", kEnd));
  CHECK(up.WaitForOutput("chief ended with signal 9 (Killed); it is started again", kEnd));
  CHECK(WaitForText(second, " of 1,000,000, loss", kEnd));
  up.Signal(SIGINT);
  const auto code = up.Wait(absl::Seconds(20));
  INFO(up.Output() << cluster.folder().Read("run/logs/chief.log")
                   << cluster.folder().Read("run/logs/chief-1.log"));
  CHECK(code == 130);
  CHECK(FindCheckpoint(cluster.folder().Path("checkpoints")).value() != "");
  CHECK(ProcessesWith(run).empty());
}

// Chiefs are killed in turn, and started again as standbys. Before each kill, all train for so
// long.
void KillManyTimes(int kills, absl::Duration between) {
  Job job(kForeverSteps);
  std::vector<double> pauses;
  int chief = 0;
  for (int i = 0; i < kills; ++i) {
    const absl::Duration next = Now() + between;
    while (Now() < next) job.WaitForNextLook();
    job.cluster.chief(chief).Signal(SIGKILL);
    pauses.push_back(absl::ToDoubleSeconds(job.LongestPause(1 - chief)));
    REQUIRE(job.cluster.chief(chief).Wait(kEnd) == 137);
    job.StandBy(chief);
    chief = 1 - chief;
  }
  std::sort(pauses.begin(), pauses.end());
  const std::string result = absl::StrFormat(
      "%d kills of the chief, --lease=2: %.2f s without a step (median), %.2f worst", kills,
      pauses[pauses.size() / 2], pauses.back());
  std::cout << result << "\n";
  INFO(result);
  CHECK(pauses.back() <= 3);
  // What it has come to is what a calm run comes to.
  job.cluster.chief(1 - chief).Signal(SIGTERM);
  REQUIRE(job.cluster.chief(1 - chief).Wait(kEnd) == 143);
  job.cluster.chief(chief).Signal(SIGTERM);
  REQUIRE(job.cluster.chief(chief).Wait(kEnd) == 143);
  const std::string saved = job.cluster.folder().Read("checkpoints/LATEST");
  const int steps = std::stoi(saved.substr(saved.find('-') + 1));
  CHECK(TensorsOf(job.folder() + "/ckpt-" + std::to_string(steps)) == Calm(steps).tensors);
}

TEST_CASE("chiefs that are killed again and again cost a lease each, and no bit") {
  KillManyTimes(3, absl::ZeroDuration());
}

// ./lockstep test //tests/integration:standby_test --test_arg='[.kills]' --test_output=all
TEST_CASE("twenty-four killed chiefs", "[.kills]") {
  // Beyond a lease, a standby is no longer a new one.
  KillManyTimes(24, absl::Milliseconds(2130));
}

}  // namespace
}  // namespace lockstep::test
