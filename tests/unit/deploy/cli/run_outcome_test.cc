#include "deploy/cli/run_outcome.h"

#include <signal.h>

#include <catch2/catch.hpp>

namespace lockstep::deploy {
namespace {

using Catch::Matchers::Contains;
using Phase = RunOutcome::Phase;

constexpr size_t kChief = 0;
constexpr size_t kPs = 1;
constexpr size_t kWorker0 = 2;
constexpr size_t kWorker1 = 3;
constexpr size_t kWorker2 = 4;

// As waitpid reports them on Linux.
int Exit(int code) { return code << 8; }
int Killed(int signal) { return signal; }

RunOutcome ThreeWorkersTwoNeeded(bool keeps_state = true) {
  return RunOutcome({{Role::kChief, 0},
                     {Role::kPs, 0},
                     {Role::kWorker, 0},
                     {Role::kWorker, 1},
                     {Role::kWorker, 2}},
                    {.workers_needed = 2, .keeps_state = keeps_state});
}

// Five times a minute.
void UseUpReturns(RunOutcome* outcome, size_t task) {
  for (int times = 0; times < 5; ++times) {
    CHECK(outcome->TaskEnded(task, Killed(SIGKILL), absl::ZeroDuration()).start_again);
  }
}

// For good.
std::string End(RunOutcome* outcome, size_t task, int wait_status) {
  const auto [note, start_again] = outcome->TaskEnded(task, wait_status, absl::ZeroDuration());
  CHECK_FALSE(start_again);
  return note;
}

TEST_CASE("a run whose tasks all end well is done, in whatever order they end") {
  RunOutcome chief_first = ThreeWorkersTwoNeeded();
  for (size_t task : {kChief, kPs, kWorker0, kWorker1, kWorker2}) {
    CHECK_FALSE(chief_first.all_ended());
    CHECK(End(&chief_first, task, Exit(0)).empty());
  }
  CHECK(chief_first.all_ended());
  CHECK(chief_first.exit_code() == 0);
  CHECK_FALSE(chief_first.culprit());

  RunOutcome chief_last = ThreeWorkersTwoNeeded();
  for (size_t task : {kWorker0, kWorker1, kWorker2, kPs}) End(&chief_last, task, Exit(0));
  CHECK(chief_last.phase() == Phase::kRunning);
  End(&chief_last, kChief, Exit(0));
  CHECK(chief_last.exit_code() == 0);
}

TEST_CASE("what ends with 128 or more is started again, until it has ended too often") {
  const std::vector<int> ends = {Killed(SIGKILL), Exit(138), Exit(143)};
  for (const size_t task : {kChief, kPs, kWorker1}) {
    RunOutcome outcome = ThreeWorkersTwoNeeded();
    absl::Duration now;
    for (int times = 0; times < 5; ++times, now += absl::Seconds(11)) {
      const auto [note, again] = outcome.TaskEnded(task, ends[times % 3], now);
      CHECK(again);
      CHECK_THAT(note, Contains("it is started again"));
      CHECK(outcome.alive(task));
    }
    // The first one was a minute ago.
    now += absl::Seconds(5);
    CHECK(outcome.TaskEnded(task, Killed(SIGKILL), now).start_again);
    CHECK_FALSE(outcome.TaskEnded(task, Killed(SIGKILL), now).start_again);
    CHECK_FALSE(outcome.alive(task));
    CHECK((outcome.phase() == Phase::kFailing) == (task != kWorker1));
  }
}

TEST_CASE("a chief that finds its standby in its place is started again as the next standby") {
  for (const bool has_standby : {true, false}) {
    RunOutcome outcome({{Role::kChief, 0}, {Role::kChief, 1}, {Role::kPs, 0}, {Role::kWorker, 0}},
                       {.has_standby = has_standby});
    CHECK(outcome.TaskEnded(0, Exit(80), absl::ZeroDuration()).start_again == has_standby);
    CHECK(outcome.phase() == (has_standby ? Phase::kRunning : Phase::kFailing));
  }
}

TEST_CASE("a standby's end before the job has begun is not the end of the first chief's job") {
  const std::vector<RunOutcome::Member> members = {
      {Role::kChief, 0}, {Role::kChief, 1}, {Role::kPs, 0}, {Role::kWorker, 0}};
  RunOutcome early(members, {.has_standby = true});
  CHECK_THAT(End(&early, 1, Exit(0)),
             Contains("chief 1 ended with ") && Contains("; the run goes on without it"));
  CHECK(early.phase() == Phase::kRunning);
  CHECK(End(&early, 0, Exit(0)).empty());
  CHECK(early.phase() == Phase::kFinishing);
  // One that has taken command.
  RunOutcome begun(members, {.has_standby = true});
  begun.NoteBegun();
  CHECK(End(&begun, 1, Exit(0)).empty());
  CHECK(begun.phase() == Phase::kFinishing);
  RunOutcome first(members, {.has_standby = true});
  End(&first, 0, Exit(0));
  CHECK(first.phase() == Phase::kFinishing);
}

TEST_CASE("nothing is started again once the run comes to its end") {
  RunOutcome done = ThreeWorkersTwoNeeded();
  End(&done, kChief, Exit(0));
  End(&done, kWorker0, Killed(SIGKILL));
  RunOutcome failing = ThreeWorkersTwoNeeded();
  End(&failing, kWorker0, Exit(65));
  End(&failing, kPs, Killed(SIGKILL));
  RunOutcome interrupted = ThreeWorkersTwoNeeded();
  interrupted.Interrupt(SIGINT);
  End(&interrupted, kChief, Exit(143));
  RunOutcome stopping = ThreeWorkersTwoNeeded();
  End(&stopping, kChief, Exit(130));
  End(&stopping, kWorker0, Exit(138));
}

TEST_CASE("a task whose return is called off is over") {
  RunOutcome outcome = ThreeWorkersTwoNeeded();
  REQUIRE(outcome.TaskEnded(kWorker0, Exit(138), absl::ZeroDuration()).start_again);
  for (size_t task : {kWorker1, kWorker2, kPs, kChief}) End(&outcome, task, Exit(0));
  CHECK_FALSE(outcome.all_ended());
  outcome.CallOffReturn(kWorker0);
  CHECK(outcome.all_ended());
  CHECK(outcome.exit_code() == 0);
}

TEST_CASE("a job that was told to end ends the run with 130, whoever hears of it first") {
  const std::vector<size_t> orders[] = {{kChief, kPs, kWorker0, kWorker1, kWorker2},
                                        {kWorker0, kWorker1, kWorker2, kPs, kChief},
                                        {kPs, kWorker0, kChief, kWorker1, kWorker2}};
  for (const std::vector<size_t>& order : orders) {
    RunOutcome outcome = ThreeWorkersTwoNeeded();
    for (size_t task : order) CHECK_FALSE(Contains("again").match(End(&outcome, task, Exit(130))));
    CHECK(outcome.phase() == Phase::kStopping);
    CHECK(outcome.all_ended());
    CHECK(outcome.exit_code() == 130);
    CHECK_FALSE(outcome.culprit());
  }
  RunOutcome outcome = ThreeWorkersTwoNeeded();
  CHECK(End(&outcome, kWorker1, Exit(130)) == "worker 1 was told to end");
  CHECK(outcome.phase() == Phase::kRunning);
  CHECK(End(&outcome, kChief, Exit(130)) == "chief was told to end");
  CHECK(End(&outcome, kPs, Exit(74)).empty());
  CHECK(outcome.exit_code() == 130);
}

TEST_CASE("a task that cannot be started again ends the run") {
  RunOutcome outcome = ThreeWorkersTwoNeeded();
  REQUIRE(outcome.TaskEnded(kPs, Killed(SIGKILL), absl::ZeroDuration()).start_again);
  CHECK(outcome.CannotReturn(kPs, absl::NotFoundError("ps/ps: no such file")) ==
        "ps/ps: no such file");
  CHECK(outcome.phase() == Phase::kFailing);
  CHECK(outcome.exit_code() == 66);
  CHECK_FALSE(outcome.alive(kPs));
}

TEST_CASE("a lost backup worker does not end the run, the next one does") {
  RunOutcome outcome = ThreeWorkersTwoNeeded();
  for (size_t task : {kWorker1, kWorker2}) UseUpReturns(&outcome, task);
  CHECK_THAT(End(&outcome, kWorker1, Exit(138)),
             Contains("worker 1") && Contains("exit code 138") && Contains("goes on"));
  CHECK(outcome.phase() == Phase::kRunning);

  CHECK_THAT(End(&outcome, kWorker2, Exit(138)),
             Contains("1 worker is left") && Contains("needs 2"));
  CHECK(outcome.phase() == Phase::kFailing);
  CHECK(outcome.culprit() == kWorker2);
  CHECK(outcome.exit_code() == 138);
}

TEST_CASE("a run that went on without its backup ends well") {
  RunOutcome outcome = ThreeWorkersTwoNeeded();
  UseUpReturns(&outcome, kWorker0);
  End(&outcome, kWorker0, Exit(138));
  for (size_t task : {kChief, kPs, kWorker1, kWorker2}) End(&outcome, task, Exit(0));
  CHECK(outcome.all_ended());
  CHECK(outcome.exit_code() == 0);
}

TEST_CASE("a worker that found a mistake ends the run, backup or not") {
  RunOutcome outcome = ThreeWorkersTwoNeeded();
  CHECK_THAT(End(&outcome, kWorker0, Exit(65)), Contains("exit code 65 (corrupt data"));
  CHECK(outcome.phase() == Phase::kFailing);
  // What ends because of it changes nothing.
  CHECK(End(&outcome, kChief, Exit(78)).empty());
  CHECK(End(&outcome, kPs, Killed(SIGTERM)).empty());
  CHECK(outcome.exit_code() == 65);
  CHECK(outcome.culprit() == kWorker0);
}

TEST_CASE("a ps that has nothing to go back to, or a chief's own end, ends the run with its code") {
  RunOutcome ps = ThreeWorkersTwoNeeded(/*keeps_state=*/false);
  CHECK_THAT(End(&ps, kPs, Killed(SIGKILL)),
             Contains("; its variables are lost and the job has no checkpoint to "
                      "go back to. Remedy: write checkpoint { folder: "));
  CHECK(ps.phase() == Phase::kFailing);
  CHECK(ps.exit_code() == 137);

  RunOutcome chief = ThreeWorkersTwoNeeded();
  End(&chief, kChief, Exit(79));
  CHECK(chief.exit_code() == 79);
  CHECK(chief.culprit() == kChief);
}

TEST_CASE("a ps that fails after the job is done still makes the run fail, a killed worker not") {
  RunOutcome outcome = ThreeWorkersTwoNeeded();
  End(&outcome, kChief, Exit(0));
  CHECK(outcome.phase() == Phase::kFinishing);
  End(&outcome, kWorker0, Exit(138));
  End(&outcome, kWorker1, Exit(138));
  CHECK(outcome.phase() == Phase::kFinishing);
  End(&outcome, kPs, Exit(74));
  CHECK(outcome.exit_code() == 74);
}

TEST_CASE("the user's signal decides the exit code, also of a run that was failing") {
  RunOutcome interrupted = ThreeWorkersTwoNeeded();
  End(&interrupted, kPs, Exit(74));
  interrupted.Interrupt(SIGINT);
  End(&interrupted, kChief, Exit(143));
  CHECK(interrupted.phase() == Phase::kInterrupted);
  CHECK(interrupted.exit_code() == 130);
  CHECK_FALSE(interrupted.culprit());

  RunOutcome terminated = ThreeWorkersTwoNeeded();
  terminated.Interrupt(SIGTERM);
  CHECK(terminated.exit_code() == 143);
}

TEST_CASE("tasks that outlive the job are named, and the run fails") {
  RunOutcome outcome = ThreeWorkersTwoNeeded();
  for (size_t task : {kChief, kWorker0, kWorker2}) End(&outcome, task, Exit(0));
  CHECK_THAT(outcome.FinishingTookTooLong(), Contains("ps 0, worker 1"));
  CHECK(outcome.phase() == Phase::kFailing);
  CHECK(outcome.exit_code() == 70);
}

}  // namespace
}  // namespace lockstep::deploy
