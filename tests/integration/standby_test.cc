// Chiefs that stand by, in real processes. How long they take to take over: standby_time_test.cc.
#include <signal.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/checkpoint/earlier_runs.h"
#include "common/client/ps_control.h"
#include "common/client/status_client.h"
#include "common/config/address.h"
#include "tests/integration/standby_job.h"
#include "tests/integration/training_run.h"
#include "tests/support/await.h"
#include "tests/support/wait.h"

namespace lockstep::test {
namespace {

using Catch::Matchers::Contains;

// A chief's first view of the only epoch of a job.
SetViewRequest ViewOf(const Cluster& cluster, absl::Duration lease = absl::Seconds(2)) {
  SetViewRequest view;
  view.mutable_command()->set_job(7);
  view.mutable_command()->set_term(1);
  view.mutable_command()->set_chief(5);
  view.set_epoch(1);
  view.set_cluster(cluster.spec().Canonical());
  view.set_lease_ms(absl::ToInt64Milliseconds(lease));
  return view;
}

TEST_CASE(
    "workers that keep the variables go on with the standby, which has no checkpoint to read") {
  constexpr char kReplicated[] = "strategy { replicated {} }";
  constexpr int kReplicatedSteps = 600;
  const CalmRun calm(kReplicatedSteps, kReplicated);
  StandbyJob job(kReplicatedSteps, 2, false, kReplicated);
  job.cluster.chief(0).Signal(SIGKILL);
  CHECK(job.LongestPause(1) <= kEnd);
  job.CheckEndsWell(1);
  CheckSameBits(&job, 1, calm);
}

TEST_CASE("of two standbys one takes over, and the other stands by for that one") {
  StandbyJob job(kForeverSteps, 3);
  job.cluster.chief(0).Signal(SIGKILL);
  const auto commands = [&](int chief) {
    return job.cluster.chief(chief).WaitForOutput("taking over at step", absl::ZeroDuration());
  };
  const absl::Duration deadline = Clock::Real()->Monotonic() + kEnd;
  while (!commands(1) && !commands(2) && Clock::Real()->Monotonic() < deadline) {
    job.WaitForNextLook();
  }
  const int first = commands(1) ? 1 : 2;
  const int second = 3 - first;
  const std::string standing_by = absl::StrCat("standing by: chief ", first, " (");
  INFO(job.cluster.Logs());
  REQUIRE(job.cluster.chief(second).WaitForOutput(standing_by, kEnd));
  CHECK_FALSE(commands(second));
  job.cluster.chief(first).Signal(SIGKILL);
  CHECK(job.LongestPause(second) <= kEnd);
  job.cluster.chief(second).Signal(SIGINT);
  CHECK(job.cluster.chief(second).Wait(kEnd) == 130);
}

TEST_CASE("a standby ends with the job: well, or with the code that the job was given up with") {
  SECTION("it is done") {
    StandbyJob job(300);
    job.CheckEndsWell(0);
    CHECK(job.cluster.chief(1).Wait(kEnd) == 0);
    // Also one that comes when all is over.
    job.cluster.StartStandby(1, kStandbyFlags);
    CHECK(job.cluster.chief(1).Wait(kEnd) == 0);
  }
  SECTION("it is interrupted") {
    StandbyJob job(kForeverSteps);
    job.cluster.chief(0).Signal(SIGINT);
    CHECK(job.cluster.chief(0).Wait(kEnd) == 130);
    CHECK(job.cluster.chief(1).Wait(kEnd) == 130);
    CHECK_THAT(job.cluster.chief(1).Output(), Contains("the job was given up: "));
  }
}

TEST_CASE("a standby hears of the end of the job from a copy of shard 0, too") {
  Cluster cluster(2, 1, 2);
  Process ps(cluster.Ps(1));
  REQUIRE(ps.WaitForOutput("listening", kWhole));
  const auto own = MakePsControl({.address = cluster.spec().ps[1], .name = "ps 1"});
  GetViewRequest opens;
  opens.set_opens_copy_port(true);
  const auto opened = CallAndWait(*own, kGetView, opens);
  REQUIRE(opened.ok());
  auto address = ParseAddress(cluster.spec().ps[1]);
  REQUIRE(address.ok());
  address->port = static_cast<int>(opened->copy_port());
  const auto copy = MakePsControl({.address = address->ToString(), .name = "the copy of ps 0"});
  SetViewRequest view = ViewOf(cluster);
  view.set_role(COPY);
  REQUIRE(CallAndWait(*copy, kSetView, view).ok());
  view.set_shard(1);
  view.set_role(PRIMARY);
  REQUIRE(CallAndWait(*own, kSetView, view).ok());
  WatchCommandRequest watch;
  watch.set_caller(9);
  watch.set_cluster(view.cluster());
  REQUIRE(CallAndWait(*copy, kWatchCommand, watch).ok());
  FinishRequest finish;
  *finish.mutable_command() = view.command();
  REQUIRE(CallAndWait(*copy, kFinish, finish).ok());
  REQUIRE(CallAndWait(*own, kFinish, finish).ok());
  REQUIRE(ps.WaitForOutput("the job is done", kEnd));
  const auto over = CallAndWait(*copy, kWatchCommand, watch);
  INFO(over.status().ToString());
  REQUIRE(over.ok());
  CHECK(over->command().state() == CommandStatus::JOB_OVER);
  CHECK(ps.Wait(kEnd) == 0);
}

TEST_CASE("the time in which ps 0 was stopped is no silence of the chief") {
  const auto begin_lease = [](const Cluster& cluster) {
    auto control = MakePsControl({.address = cluster.spec().ps[0], .name = "ps 0"});
    REQUIRE(CallAndWait(*control, kSetView, ViewOf(cluster, absl::Seconds(3))).ok());
    return control;
  };
  Cluster cluster(1, 1, 2);
  Process ps(cluster.Ps(0));
  Cluster running(1, 1, 2);
  Process running_ps(running.Ps(0));
  REQUIRE(ps.WaitForOutput("listening", kWhole));
  REQUIRE(running_ps.WaitForOutput("listening", kWhole));
  const auto control = begin_lease(cluster);
  ps.Signal(SIGSTOP);
  // A lease that begins later tells when the other one's time is over.
  const auto running_control = begin_lease(running);
  WatchCommandRequest watch;
  watch.set_term(1);
  watch.set_cluster(running.spec().Canonical());
  const auto over = CallAndWait(*running_control, kWatchCommand, watch);
  REQUIRE(over.ok());
  REQUIRE(over->command().state() == CommandStatus::EXPIRED);
  ps.Signal(SIGCONT);
  const auto seen = CallAndWait(*control, kGetView, GetViewRequest());
  REQUIRE(seen.ok());
  CHECK(seen->command_status().state() == CommandStatus::HELD);
}

TEST_CASE("a standby that has no call at ps 0 as the job ends hears of it by its next one") {
  Cluster cluster(1, 1, 2);
  Process ps(cluster.Ps(0));
  REQUIRE(ps.WaitForOutput("listening", kWhole));
  const auto control = MakePsControl({.address = cluster.spec().ps[0], .name = "ps 0"});
  const SetViewRequest view = ViewOf(cluster);
  REQUIRE(CallAndWait(*control, kSetView, view).ok());
  WatchCommandRequest watch;
  watch.set_caller(9);
  watch.set_cluster(view.cluster());
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

TEST_CASE("a standby with another cluster spec is told so while another chief commands") {
  StandbyJob job(kForeverSteps);
  job.cluster.chief(1).Signal(SIGTERM);
  REQUIRE(job.cluster.chief(1).Wait(kEnd) == 143);
  job.cluster.Move(Role::kWorker, 0);
  job.cluster.StartStandby(1, kStandbyFlags);
  CHECK(job.cluster.chief(1).Wait(kWhole) == 78);
  CHECK_THAT(job.cluster.chief(1).Output(),
             Contains("ps 0 has another cluster spec than the chief: ") &&
                 Contains(job.cluster.spec().workers[0]));
  CHECK(job.cluster.WaitForStep(*job.ClosedSteps() + 100, kWhole));
}

TEST_CASE("a standby that is told to end leaves the job alone") {
  StandbyJob job(kForeverSteps);
  job.cluster.chief(1).Signal(SIGTERM);
  CHECK(job.cluster.chief(1).Wait(kEnd) == 143);
  const auto closed = job.ClosedSteps();
  CHECK(job.cluster.WaitForStep(closed.value() + 100, kWhole));
}

TEST_CASE("the status of a standby says for whom it stands by") {
  StandbyJob job(kForeverSteps);
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

}  // namespace
}  // namespace lockstep::test
