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

RunOutcome ThreeWorkersTwoNeeded() {
  return RunOutcome({{Role::kChief, 0},
                     {Role::kPs, 0},
                     {Role::kWorker, 0},
                     {Role::kWorker, 1},
                     {Role::kWorker, 2}},
                    2);
}

TEST_CASE("a run whose tasks all end well is done, in whatever order they end") {
  RunOutcome chief_first = ThreeWorkersTwoNeeded();
  for (size_t task : {kChief, kPs, kWorker0, kWorker1, kWorker2}) {
    CHECK_FALSE(chief_first.all_ended());
    CHECK(chief_first.TaskEnded(task, Exit(0)).empty());
  }
  CHECK(chief_first.all_ended());
  CHECK(chief_first.exit_code() == 0);
  CHECK_FALSE(chief_first.culprit());

  RunOutcome chief_last = ThreeWorkersTwoNeeded();
  for (size_t task : {kWorker0, kWorker1, kWorker2, kPs}) chief_last.TaskEnded(task, Exit(0));
  CHECK(chief_last.phase() == Phase::kRunning);
  chief_last.TaskEnded(kChief, Exit(0));
  CHECK(chief_last.exit_code() == 0);
}

TEST_CASE("a killed backup worker does not end the run, the next one does") {
  RunOutcome outcome = ThreeWorkersTwoNeeded();
  CHECK_THAT(outcome.TaskEnded(kWorker1, Killed(SIGKILL)),
             Contains("worker 1") && Contains("signal 9") && Contains("goes on"));
  CHECK(outcome.phase() == Phase::kRunning);

  CHECK_THAT(outcome.TaskEnded(kWorker2, Exit(138)),
             Contains("1 worker is left") && Contains("needs 2"));
  CHECK(outcome.phase() == Phase::kFailing);
  CHECK(outcome.culprit() == kWorker2);
  CHECK(outcome.exit_code() == 138);
}

TEST_CASE("a run that went on without its backup ends well") {
  RunOutcome outcome = ThreeWorkersTwoNeeded();
  outcome.TaskEnded(kWorker0, Killed(SIGKILL));
  for (size_t task : {kChief, kPs, kWorker1, kWorker2}) outcome.TaskEnded(task, Exit(0));
  CHECK(outcome.all_ended());
  CHECK(outcome.exit_code() == 0);
}

TEST_CASE("a worker that found a mistake ends the run, backup or not") {
  RunOutcome outcome = ThreeWorkersTwoNeeded();
  CHECK_THAT(outcome.TaskEnded(kWorker0, Exit(65)), Contains("exit code 65 (corrupt data"));
  CHECK(outcome.phase() == Phase::kFailing);
  // What ends because of it changes nothing.
  CHECK(outcome.TaskEnded(kChief, Exit(78)).empty());
  CHECK(outcome.TaskEnded(kPs, Killed(SIGTERM)).empty());
  CHECK(outcome.exit_code() == 65);
  CHECK(outcome.culprit() == kWorker0);
}

TEST_CASE("a ps or chief that is lost ends the run with its code") {
  RunOutcome ps = ThreeWorkersTwoNeeded();
  ps.TaskEnded(kPs, Killed(SIGKILL));
  CHECK(ps.phase() == Phase::kFailing);
  CHECK(ps.exit_code() == 137);

  RunOutcome chief = ThreeWorkersTwoNeeded();
  chief.TaskEnded(kChief, Exit(79));
  CHECK(chief.exit_code() == 79);
  CHECK(chief.culprit() == kChief);
}

TEST_CASE("a ps that fails after the job is done still makes the run fail, a killed worker not") {
  RunOutcome outcome = ThreeWorkersTwoNeeded();
  outcome.TaskEnded(kChief, Exit(0));
  CHECK(outcome.phase() == Phase::kFinishing);
  outcome.TaskEnded(kWorker0, Killed(SIGKILL));
  outcome.TaskEnded(kWorker1, Killed(SIGKILL));
  CHECK(outcome.phase() == Phase::kFinishing);
  outcome.TaskEnded(kPs, Exit(74));
  CHECK(outcome.exit_code() == 74);
}

TEST_CASE("the user's signal decides the exit code, also of a run that was failing") {
  RunOutcome interrupted = ThreeWorkersTwoNeeded();
  interrupted.TaskEnded(kPs, Exit(74));
  interrupted.Interrupt(SIGINT);
  interrupted.TaskEnded(kChief, Exit(143));
  CHECK(interrupted.phase() == Phase::kInterrupted);
  CHECK(interrupted.exit_code() == 130);
  CHECK_FALSE(interrupted.culprit());

  RunOutcome terminated = ThreeWorkersTwoNeeded();
  terminated.Interrupt(SIGTERM);
  CHECK(terminated.exit_code() == 143);
}

TEST_CASE("tasks that outlive the job are named, and the run fails") {
  RunOutcome outcome = ThreeWorkersTwoNeeded();
  for (size_t task : {kChief, kWorker0, kWorker2}) outcome.TaskEnded(task, Exit(0));
  CHECK_THAT(outcome.FinishingTookTooLong(), Contains("ps 0, worker 1"));
  CHECK(outcome.phase() == Phase::kFailing);
  CHECK(outcome.exit_code() == 70);
}

}  // namespace
}  // namespace lockstep::deploy
