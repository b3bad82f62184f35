// What a job does about processes that are lost.
#include <catch2/catch.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/exit_code.h"
#include "common/base/lost_variables.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/chief/job/job_fixture.h"

namespace lockstep::chief {
namespace {

// The ps lacks both gradients of this variable.
void SayPending(JobFixture* f, const std::string& variable) {
  ShardProgress* progress = f->view.mutable_progress();
  progress->set_open_variables(1);
  progress->clear_pending();
  progress->add_pending()->set_name(variable);
  progress->mutable_pending(0)->set_required(2);
}

TEST_CASE("when a lease ends the status names who is missing, and later what is waited for") {
  JobFixture f(TwoWorkerPlan(4));
  f.Register(0, 10);
  f.Beat(0, 10);
  f.Step();
  f.Pass(absl::Seconds(4));
  CHECK(f.Status().state() == "training");
  CHECK(f.Status().waiting_for().empty());
  f.Pass(absl::Seconds(2));
  CHECK(f.Status().state() == "waiting");
  CHECK(f.Status().waiting_for().find(
            "step 1 for 6.0 s: worker 0 (127.0.0.1:2) was lost 0.9 s ago") == 0);
  CHECK(f.Status().waiting_for().find(
            "; the step needs 1 gradient of each variable, 0 workers live and have data") !=
        std::string::npos);
  f.Pass(absl::Seconds(5));
  const ProcessStatus status = f.Status();
  CHECK(status.waiting_for().find("worker 0 (127.0.0.1:2) was lost") != std::string::npos);
  CHECK(status.waiting_for().find("worker 1 (127.0.0.1:3) has not registered") !=
        std::string::npos);
  CHECK(status.job().members(0).state() == "lost");
  // A successor is admitted and steps go on.
  const auto successor = f.Register(0, 11);
  REQUIRE(successor->has_value());
  CHECK((**successor)->ready());
  CHECK((**successor)->start_step() == 1);
  f.Step();
  CHECK(f.Status().state() == "training");
}

JobPlan TwoNeeded(QuorumPolicy policy) {
  JobPlan plan = TwoWorkerPlan(100);
  plan.job.mutable_sync()->set_replicas_to_aggregate(2);
  plan.job.mutable_sync()->set_quorum_policy(policy);
  return plan;
}

// Worker 1 is silent, worker 0 is not.
void LoseWorkerOne(JobFixture* f) {
  f->Register(0, 10);
  f->Register(1, 20);
  f->Step();
  for (int i = 0; i < 6; ++i) {
    f->Beat(0, 10);
    f->Pass(absl::Seconds(1));
  }
}

TEST_CASE("a job that shrinks grants the steps at hand again, and grows back") {
  JobFixture f(TwoNeeded(SHRINK));
  LoseWorkerOne(&f);
  CHECK(f.Status().job().required_now() == 1);
  REQUIRE(f.ps.grants.size() == 4);
  for (size_t i : {2, 3}) {
    CHECK(f.ps.grants.at(i).required() == 1);
    CHECK(f.ps.grants.at(i).step() == static_cast<int64_t>(i - 1));
  }
  // What the calls before are told changes nothing.
  f.ps.grants.Answer(absl::UnavailableError("step 1 was granted again"));
  f.ps.grants.Answer(absl::UnavailableError("step 2 was granted again"));
  f.Pass(absl::Milliseconds(500));
  CHECK(f.ps.grants.size() == 2);
  CHECK(f.Status().waiting_for().empty());
  f.Step();
  CHECK(f.Status().global_step() == 2);
  CHECK(f.ps.grants.at(1).required() == 1);

  f.Register(1, 21);
  CHECK(f.Status().job().required_now() == 2);
  REQUIRE(f.ps.grants.size() == 4);
  CHECK(f.ps.grants.at(2).required() == 2);
}

TEST_CASE("a job that aborts names who is missing since when, and lets everybody go") {
  JobFixture f(TwoNeeded(ABORT));
  LoseWorkerOne(&f);
  f.Beat(0, 10);
  f.Pass(absl::Seconds(3));
  REQUIRE(f.ps.finishes.size() == 1);
  f.ps.finishes.Answer(FinishReply());
  f.Settle();
  REQUIRE(f.ended.has_value());
  CHECK(ExitCodeFor(*f.ended) == ExitCode::kPeersLost);
  const std::string text(f.ended->message());
  CHECK(text.find("step 1: worker 1 (127.0.0.1:3) was lost 0.0 s ago, last heard of 5.") == 0);
  CHECK(text.find("; the step needs 2 gradients of each variable, 1 worker lives and has data") !=
        std::string::npos);
  CHECK(text.find("Remedy: ") != std::string::npos);
}

TEST_CASE("a replicated job that aborts waits for no version that too few workers can make") {
  const test::TemporaryFolder folder;
  JobPlan plan = TwoNeeded(ABORT);
  plan.job.mutable_strategy()->mutable_replicated();
  plan.job.mutable_checkpoint()->set_folder(folder.path());
  JobFixture f(std::move(plan), {.waits_for_disk = true});
  f.view.set_job(9);
  f.view.set_term(f.ps.set_view.all().back().command().term());
  LoseWorkerOne(&f);
  f.Beat(0, 10);
  REQUIRE(f.ps.saves.size() == 1);
  CHECK(f.ps.saves.front().version() == 1);
  f.ps.saves.Answer(absl::FailedPreconditionError("version 1 is not kept with its slots"));
  f.Settle();
  CHECK_FALSE(f.ended.has_value());
  const auto beat = f.Beat(0, 10);
  f.Pass(absl::Milliseconds(200));
  REQUIRE(beat->has_value());
  CHECK((**beat)->fail_exit_code() == 138);
  f.Pass(absl::Seconds(3));  // for worker 1 to hear it
  REQUIRE(f.ended.has_value());
  CHECK(ExitCodeFor(*f.ended) == ExitCode::kPeersLost);
  CHECK(f.job->record().save_error.find("version 1 is not kept with its slots; too few workers "
                                        "live to make the next version") != std::string::npos);
}

TEST_CASE("the ps are told with which code the job ended and why, until they have heard it") {
  JobFixture f(TwoNeeded(ABORT));
  LoseWorkerOne(&f);
  f.Acknowledge(0, 10, f.Beat(0, 10));
  REQUIRE(f.ps.finishes.size() == 1);
  CHECK(f.ps.finishes.front().exit_code() == 138);
  CHECK(f.ps.finishes.front().reason().find("worker 1 (127.0.0.1:3) was lost") !=
        std::string::npos);
  f.ps.finishes.Answer(absl::UnavailableError("ps 0 (127.0.0.1:1) is not available"));
  f.Pass(absl::Milliseconds(500));
  CHECK_FALSE(f.ended.has_value());
  REQUIRE(f.ps.finishes.size() == 1);
  f.ps.finishes.Answer(FinishReply());
  f.Settle();
  CHECK(f.ended.has_value());
}

TEST_CASE("a job that was to go back to a checkpoint tells everybody when it is stopped instead") {
  JobPlan plan = TwoWorkerPlan(100);
  const test::TemporaryFolder folder;
  plan.job.mutable_checkpoint()->set_folder(folder.path());
  JobFixture f(std::move(plan));
  f.Register(0, 10);
  const auto beat = f.Beat(0, 10);
  f.ps.grants.Answer(LostVariablesError("ps 0 (127.0.0.1:1)"));
  f.Settle();
  REQUIRE(f.ended.has_value());
  CHECK(HasLostVariables(*f.ended));
  CHECK_FALSE(beat->has_value());
  CHECK(f.ps.finishes.size() == 0);

  f.ended.reset();
  f.job->Stop(WithExitCode(absl::CancelledError("told to stop"), ExitCode::kInterrupted));
  REQUIRE(beat->has_value());
  CHECK((**beat)->fail_exit_code() == 130);
  f.Beat(0, 10);
  f.Pass(absl::Seconds(3));  // for the worker that has not registered
  REQUIRE(f.ps.finishes.size() == 1);
  CHECK(f.ps.finishes.front().exit_code() == 130);
  f.ps.finishes.Answer(FinishReply());
  f.Settle();
  REQUIRE(f.ended.has_value());
  CHECK(ExitCodeFor(*f.ended) == ExitCode::kInterrupted);
}

TEST_CASE("a queue that stands still after a worker was killed ends a job that aborts") {
  JobPlan plan = TwoNeeded(ABORT);
  plan.job.mutable_sync()->set_token_policy(FIFO);
  JobFixture f(plan);
  SayPending(&f, "probe1");
  f.view.mutable_progress()->set_waiting_dequeues(1);
  LoseWorkerOne(&f);
  CHECK_FALSE(f.ended.has_value());
  // The ps are asked ten seconds after the last step, and ten after that.
  const auto beat = [&](int seconds) {
    for (int i = 0; i < seconds; ++i) {
      f.Beat(0, 10);
      f.Pass(absl::Seconds(1));
    }
  };
  beat(5);
  CHECK(f.Status().waiting_for().find("ps 0 waits for probe1 (0 of 2)") != std::string::npos);
  f.Pass(absl::Milliseconds(500));
  CHECK(f.ps.finishes.all().empty());
  SayPending(&f, "probe2");
  beat(10);
  beat(3);
  REQUIRE(f.ps.finishes.size() == 1);
  f.ps.finishes.Answer(FinishReply());
  f.Settle();
  REQUIRE(f.ended.has_value());
  CHECK(std::string(f.ended->message())
            .find("the step needs 2 gradients of each variable, at most 1 with its local_step can "
                  "exist") != std::string::npos);
  CHECK(std::string(f.ended->message()).find("step 1: worker 1 (127.0.0.1:3) was lost") == 0);
}

TEST_CASE("a member that is lost leaves the view of every shard") {
  JobFixture f(TwoWorkerPlan(4));
  f.Register(0, 10);
  f.Register(1, 20);
  REQUIRE(f.ps.set_view.all().back().members_size() == 2);
  for (int i = 0; i < 6; ++i) {
    f.Beat(1, 20);
    f.Pass(absl::Seconds(1));
  }
  REQUIRE(f.ps.set_view.all().back().members_size() == 1);
  CHECK(f.ps.set_view.all().back().members(0).incarnation() == 20);
}

// From now on the ps answers nothing, and these calls say so, until the job ends: after a minute.
// The status names it before that. The chief stands still for `standstill` on the way. Returns the
// seconds without that.
template <typename Calls>
int LosePs(JobFixture* f, Calls* calls, absl::Duration standstill = absl::ZeroDuration()) {
  f->ps_answers = false;
  int second = 0;
  for (; second < 90 && !f->ended.has_value(); ++second) {
    if (second == 30) f->clock.Advance(standstill);
    while (calls->size() > 0) {
      calls->Answer(absl::UnavailableError("ps 0 (127.0.0.1:1) is not available: refused"));
      f->Settle();
    }
    if (second == 15) {
      CHECK(f->Status().waiting_for().find("ps 0 (127.0.0.1:1) is not available: refused, for ") !=
            std::string::npos);
      CHECK(f->Status().job().shards(0).state() == "unreachable");
    }
    f->Pass(absl::Seconds(1));
    f->Beat(0, 10);
  }
  return second;
}

TEST_CASE("a ps that is lost is named, and ends the job after the patience") {
  JobFixture f(TwoWorkerPlan(4));
  f.Register(0, 10);
  LosePs(&f, &f.ps.grants);
  REQUIRE(f.ended.has_value());
  CHECK(ExitCodeFor(*f.ended) == ExitCode::kPeersLost);
  CHECK(f.ps.finishes.all().size() == 1);
}

JobPlan EvaluatedAtTheEnd(QuorumPolicy policy) {
  JobPlan plan = TwoWorkerPlan(1);
  plan.job.mutable_sync()->set_quorum_policy(policy);
  plan.examples.test = 100;
  return plan;
}

TEST_CASE("a job that aborts ends also when nobody is left for the last evaluation") {
  JobFixture f(EvaluatedAtTheEnd(ABORT));
  f.Register(0, 10);
  f.Beat(0, 10);
  f.Step();
  CHECK(f.Status().state() == "evaluating");
  f.Pass(absl::Seconds(10));
  REQUIRE(f.ps.finishes.size() == 1);
  f.ps.finishes.Answer(FinishReply());
  f.Settle();
  REQUIRE(f.ended.has_value());
  CHECK(ExitCodeFor(*f.ended) == ExitCode::kPeersLost);
  const std::string text(f.ended->message());
  CHECK(text.find("the evaluation of step 1: worker 0 (127.0.0.1:2) was lost") == 0);
  CHECK(text.find("; it needs a worker, and none lives. Remedy: ") != std::string::npos);
}

TEST_CASE("a job that waits for a worker to evaluate goes on with the one that comes") {
  JobFixture f(EvaluatedAtTheEnd(WAIT));
  f.Register(0, 10);
  f.Beat(0, 10);
  f.Step();
  f.Pass(absl::Seconds(30));
  CHECK_FALSE(f.ended.has_value());
  const auto successor = f.Register(0, 11);
  REQUIRE(successor->has_value());
  CHECK((**successor)->ready());
}

TEST_CASE("a ps that is lost before the last evaluation is made ends the job after the patience") {
  JobFixture f(EvaluatedAtTheEnd(WAIT));
  f.Register(0, 10);
  f.Beat(0, 10);
  f.Step();
  LosePs(&f, &f.ps.set_view);
  REQUIRE(f.ended.has_value());
  CHECK(ExitCodeFor(*f.ended) == ExitCode::kPeersLost);
  CHECK(
      std::string(f.ended->message()).find("ps 0 (127.0.0.1:1) is not available: refused, for 6") ==
      0);
}

TEST_CASE("time in which the chief stands still is not of its patience with a ps that is lost") {
  const bool trains = GENERATE(true, false);
  JobFixture f(trains ? TwoWorkerPlan(4) : EvaluatedAtTheEnd(WAIT));
  f.Register(0, 10);
  f.Beat(0, 10);
  if (!trains) f.Step();
  const absl::Duration standstill = absl::Seconds(200);
  const int seconds =
      trains ? LosePs(&f, &f.ps.grants, standstill) : LosePs(&f, &f.ps.set_view, standstill);
  CHECK(seconds >= 60);
  REQUIRE(f.ended.has_value());
  CHECK(ExitCodeFor(*f.ended) == ExitCode::kPeersLost);
}

// A chief that leaves, or is told to end the job, finds a ps that has no job.
TEST_CASE("a ps that is started again while its chief saves costs the save alone") {
  const test::TemporaryFolder folder;
  JobPlan plan = TwoWorkerPlan(100);
  plan.job.mutable_checkpoint()->set_folder(folder.path());
  JobFixture f(std::move(plan), {.waits_for_disk = true});
  f.Register(0, 10);
  f.Beat(0, 10);
  f.Step();
  const bool leaves = GENERATE(true, false);
  const ExitCode code = leaves ? ExitCode::kTerminated : ExitCode::kInterrupted;
  const absl::Status why = WithExitCode(absl::CancelledError("told to end"), code);
  leaves ? f.job->Leave(why) : f.job->Stop(why);
  f.Settle();
  CHECK(f.job->record().save_error.find("ps 0 (127.0.0.1:1) was started again and has lost its "
                                        "variables") != std::string::npos);
  f.Pass(absl::Seconds(3));  // for the workers to hear it
  CHECK(f.ps.finishes.size() == (leaves ? 0 : 1));
  if (!leaves) f.ps.finishes.Answer(FinishReply());
  f.Settle();
  REQUIRE(f.ended.has_value());
  CHECK(ExitCodeFor(*f.ended) == code);
}

TEST_CASE("a job without enough workers ends at its deadline, in training and in evaluation") {
  const bool trains = GENERATE(true, false);
  const bool asynchronous = GENERATE(true, false);
  CAPTURE(trains, asynchronous);
  JobPlan plan = trains ? TwoWorkerPlan(100) : EvaluatedAtTheEnd(WAIT);
  if (asynchronous) plan.job.mutable_sync()->mutable_asynchronous();
  JobFixture f(plan, {.quorum_deadline = absl::Seconds(20)});
  f.Register(0, 10);
  f.Beat(0, 10);
  f.Step();
  // The lease ends after 5 seconds.
  f.Pass(absl::Seconds(24));
  CHECK_FALSE(f.ended.has_value());
  CHECK(f.ps.finishes.all().empty());
  f.Pass(absl::Seconds(4));
  REQUIRE(f.ps.finishes.size() == 1);
  f.ps.finishes.Answer(FinishReply());
  f.Settle();
  REQUIRE(f.ended.has_value());
  CHECK(ExitCodeFor(*f.ended) == ExitCode::kPeersLost);
  CHECK(f.ended->message().find("too few workers for 20 s (--quorum_deadline)") !=
        std::string::npos);
}

TEST_CASE("a worker that comes back in time stops the deadline") {
  JobFixture f(TwoWorkerPlan(100), {.quorum_deadline = absl::Seconds(20)});
  f.Register(0, 10);
  f.Beat(0, 10);
  f.Step();
  for (uint64_t incarnation = 11; incarnation < 14; ++incarnation) {
    f.Pass(absl::Seconds(20));
    f.Register(0, incarnation);
    f.Beat(0, incarnation);
  }
  CHECK_FALSE(f.ended.has_value());
  CHECK(f.ps.finishes.all().empty());
}

}  // namespace
}  // namespace lockstep::chief
