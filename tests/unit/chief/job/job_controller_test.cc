#include "chief/job/job_controller.h"

#include <catch2/catch.hpp>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "chief/job/summary.h"
#include "common/base/exit_code.h"
#include "tests/unit/chief/job/job_fixture.h"

namespace lockstep::chief {
namespace {

TEST_CASE("a job goes from its first worker to its end, and everybody is told") {
  JobFixture f(TwoWorkerPlan(2));
  CHECK(f.Status().state() == "starting");
  const auto admitted = f.Register(0, 10);
  REQUIRE(admitted->has_value());
  REQUIRE((**admitted)->ready());
  CHECK((**admitted)->job_id() == 9);
  CHECK((**admitted)->term() == 1);
  CHECK((**admitted)->epoch() == 1);
  CHECK(f.ready);
  const auto heartbeat = f.Beat(0, 10);
  f.clock.Advance(absl::Seconds(2));
  f.Step(0.5f);
  CHECK(f.Status().state() == "training");
  CHECK(f.Status().global_step() == 1);
  f.clock.Advance(absl::Seconds(2));
  f.Step(0.25f);
  REQUIRE(heartbeat->has_value());
  CHECK((**heartbeat)->finish());
  f.Acknowledge(0, 10, heartbeat);
  // The second worker comes too late to help, and in time to be told.
  CHECK(f.ps.finishes.size() == 0);
  const auto late = f.Register(1, 20);
  REQUIRE(late->has_value());
  CHECK((**late)->done());
  f.Pass(absl::Milliseconds(100));
  REQUIRE(f.ps.finishes.size() == 1);
  CHECK_FALSE(f.ended.has_value());
  f.ps.finishes.Answer(FinishReply());
  f.Settle();
  REQUIRE(f.ended.has_value());
  CHECK(f.ended->ok());

  const auto summary = nlohmann::json::parse(MakeSummary(f.job->plan(), f.job->record()));
  CHECK(summary["steps"] == 2);
  CHECK(summary["losses"] == nlohmann::json({0.5, 0.25}));
  CHECK(summary["train_seconds"] == 4.0);
  CHECK(summary["examples_per_second"] == 8.0);
  CHECK(summary["accepted"] == 4);
  CHECK(summary["test_accuracy"].is_null());
  CHECK(summary["checkpoint"].is_null());
}

TEST_CASE("a job that is stopped while it takes command calls nobody when an answer comes late") {
  int taken = 0;
  ScriptedPs first, second;
  ManualExecutor executor;
  ManualClock clock;
  std::optional<absl::Status> ended;
  JobPlan plan = TwoWorkerPlan(4);
  plan.cluster.ps.push_back("127.0.0.1:9");
  plan.placement.set_shards(2);
  JobController job(
      plan,
      {.job_id = 9,
       .patience = absl::Seconds(60),
       .waits_for_disk = true,
       .on_taken = [&](uint64_t) { ++taken; }},
      {&first, &second}, &executor, &clock, [] {},
      [&](absl::Status status) { ended = std::move(status); });
  const auto answer = [&executor](auto* calls, const auto& reply) {
    REQUIRE(calls->size() == 1);
    calls->Answer(reply);
    executor.Run();
  };
  job.Start();
  answer(&first.get_view, SetViewReply());
  answer(&second.get_view, SetViewReply());
  const bool is_told = GENERATE(false, true);
  if (is_told) answer(&first.set_view, SetViewReply());
  job.Stop(absl::CancelledError("told to stop"));
  answer(is_told ? &second.set_view : &first.set_view, SetViewReply());
  CHECK(taken == (is_told ? 1 : 0));
  CHECK(second.set_view.size() == 0);
  CHECK(first.create.size() == 0);
  CHECK(second.create.size() == 0);
}

TEST_CASE("a job ends when the ps with copies have heard it, too, or after a while") {
  std::string untold = "ps 1 (b:1): connection refused";
  JobOptions options;
  options.unfinished_places = [&untold] { return untold; };
  JobFixture f(TwoWorkerPlan(1), options);
  f.Register(0, 10);
  f.Register(1, 20);
  f.Step(0.5f);
  f.Acknowledge(0, 10, f.Beat(0, 10));
  CHECK(f.ps.finishes.size() == 0);
  f.Acknowledge(1, 20, f.Beat(1, 20));
  REQUIRE(f.ps.finishes.size() == 1);
  f.ps.finishes.Answer(FinishReply());
  f.Settle();
  CHECK_FALSE(f.ended.has_value());
  const bool is_told = GENERATE(true, false);
  if (is_told) untold.clear();
  f.Pass(absl::Milliseconds(200));
  CHECK(f.ended.has_value() == is_told);
  f.Pass(absl::Seconds(2));
  REQUIRE(f.ended.has_value());
  CHECK(f.ended->ok());
}

TEST_CASE("a worker whose answer was lost is told the end again, for two seconds at most") {
  JobFixture f(TwoWorkerPlan(1));
  f.Register(0, 10);
  f.Register(1, 20);
  const auto first = f.Beat(0, 10);
  f.Beat(1, 20);
  f.Step(0.5f);
  f.Acknowledge(0, 10, first);
  f.Pass(absl::Seconds(1));
  CHECK(f.ps.finishes.size() == 0);
  const bool comes_again = GENERATE(true, false);
  if (comes_again) {
    const auto again = f.Beat(1, 20);
    CHECK((**again)->finish());
    f.Acknowledge(1, 20, again);
  } else {
    f.Pass(absl::Seconds(1));
  }
  CHECK(f.ps.finishes.size() == 1);
}

TEST_CASE("training waits for enough workers, and says who is missing") {
  JobPlan plan = TwoWorkerPlan(2);
  plan.job.mutable_sync()->set_replicas_to_aggregate(2);
  JobFixture f(plan);
  const auto first = f.Register(0, 10);
  CHECK(f.ps.grants.size() == 0);
  CHECK(f.Status().waiting_for() ==
        "enough workers: 1 of 2 is there; worker 1 (127.0.0.1:3) has not registered");
  const auto second = f.Register(1, 20);
  CHECK((**first)->ready());
  CHECK((**second)->ready());
  CHECK(f.ps.grants.size() == 2);
  CHECK(f.ps.set_view.all().back().members_size() == 2);
}

TEST_CASE("a start that waits for too long fails with 138 and leaves the ps to the next chief") {
  JobFixture f(TwoWorkerPlan(2));
  f.Pass(absl::Seconds(61));
  REQUIRE(f.ended.has_value());
  CHECK(ExitCodeFor(*f.ended) == ExitCode::kPeersLost);
  CHECK(std::string(f.ended->message()).find("worker 0 (127.0.0.1:2)") != std::string::npos);
  CHECK(f.ps.finishes.all().empty());
}

TEST_CASE("a ps that is not there in time fails the start, named") {
  ScriptedPs ps;
  ManualExecutor executor;
  ManualClock clock;
  std::optional<absl::Status> ended;
  JobController job(
      TwoWorkerPlan(2), {.job_id = 1, .patience = absl::Seconds(20)}, {&ps}, &executor, &clock,
      [] {}, [&](absl::Status status) { ended = std::move(status); });
  job.Start();
  for (int i = 0; i < 210; ++i) {
    clock.Advance(absl::Milliseconds(100));
    job.Tick();
    executor.Run();
    if (ps.get_view.size() > 0) {
      ps.get_view.Answer(absl::UnavailableError("ps 0 (127.0.0.1:1) is not available: refused"));
      executor.Run();
    }
  }
  CHECK(ps.get_view.all().size() > 5);
  REQUIRE(ended.has_value());
  CHECK(ExitCodeFor(*ended) == ExitCode::kPeersLost);
  CHECK(std::string(ended->message()).find("ps 0 (127.0.0.1:1)") != std::string::npos);
}

TEST_CASE("a worker's error ends the job for all") {
  JobFixture f(TwoWorkerPlan(4));
  f.Register(0, 10);
  f.Register(1, 20);
  const auto other = f.Beat(0, 10);
  ReportErrorRequest error;
  error.set_job_id(9);
  error.set_worker(1);
  error.set_incarnation(20);
  error.set_message("data gone");
  error.set_exit_code(66);
  absl::StatusOr<ReportErrorReply> reported = absl::UnknownError("not answered");
  f.job->worker_calls()->ReportError(
      error, Answer<ReportErrorReply>(
                 [&](absl::StatusOr<ReportErrorReply> reply) { reported = std::move(reply); }));
  f.Settle();
  CHECK(reported.ok());
  REQUIRE(other->has_value());
  CHECK((**other)->fail_exit_code() == 66);
  CHECK((**other)->fail().find("data gone") != std::string::npos);
  CHECK(f.ps.finishes.size() == 0);
  f.Acknowledge(0, 10, other);
  REQUIRE(f.ps.finishes.size() == 1);
  f.ps.finishes.Answer(FinishReply());
  f.Settle();
  CHECK(ExitCodeFor(*f.ended) == ExitCode::kInputNotFound);
}

TEST_CASE("a chief that is told to stop tells all, and waits for nobody for long") {
  JobFixture f(TwoWorkerPlan(4));
  f.Register(0, 10);
  f.Register(1, 20);
  f.job->Stop(WithExitCode(absl::CancelledError("interrupted"), ExitCode::kInterrupted));
  CHECK(f.ps.finishes.size() == 0);
  f.Pass(absl::Seconds(2.1));
  REQUIRE(f.ps.finishes.size() == 1);
  CHECK_FALSE(f.ended.has_value());
  f.Pass(absl::Seconds(2.1));
  REQUIRE(f.ended.has_value());
  CHECK(ExitCodeFor(*f.ended) == ExitCode::kInterrupted);
}

TEST_CASE("a chief does not wait for long for a step shard that does not hear of its end") {
  JobFixture f(TwoWorkerPlan(4));
  f.Register(0, 10);
  f.ps_answers = false;
  f.job->Leave(WithExitCode(absl::CancelledError("told to end"), ExitCode::kTerminated));
  f.Pass(absl::Milliseconds(900));
  CHECK_FALSE(f.ended.has_value());
  f.Pass(absl::Milliseconds(200));
  CHECK(f.ended.has_value());
}

TEST_CASE("a chief that finds another one in its place tells nobody and ends with 80") {
  JobFixture f(TwoWorkerPlan(4));
  f.Register(0, 10);
  f.ps_answers = false;
  f.Pass(absl::Milliseconds(1300));  // a quarter of the lease
  REQUIRE(f.ps.renewals.size() == 1);
  f.ps.renewals.Answer(absl::AbortedError("another chief commands"));
  f.Pass(absl::Milliseconds(200));
  REQUIRE(f.ended.has_value());
  CHECK(ExitCodeFor(*f.ended) == ExitCode::kFenced);
  CHECK(f.ps.finishes.all().empty());
  const size_t renewals = f.ps.renewals.all().size();
  f.Pass(absl::Seconds(5));
  CHECK(f.ps.renewals.all().size() == renewals);
}

TEST_CASE("a chief that leaves tells nobody, and has nothing to save without a folder") {
  JobFixture f(TwoWorkerPlan(4));
  f.Register(0, 10);
  const auto heartbeat = f.Beat(0, 10);
  f.Step();
  f.job->Leave(WithExitCode(absl::CancelledError("told to end"), ExitCode::kTerminated));
  CHECK_FALSE(f.ended.has_value());
  CHECK(f.ps.renewals.front().end() == CommandStatus::RELEASED);
  f.Settle();
  REQUIRE(f.ended.has_value());
  CHECK(ExitCodeFor(*f.ended) == ExitCode::kTerminated);
  CHECK_FALSE(heartbeat->has_value());
  CHECK(f.ps.finishes.all().empty());
}

TEST_CASE("a job with steps whose learning rate is 0 says so from its start on") {
  JobPlan plan = TwoWorkerPlan(8);
  plan.start = GlobalStep(6);
  plan.job.mutable_optimizer()->mutable_learning_rate()->mutable_cosine()->set_decay_steps(6);
  JobFixture f(plan);
  REQUIRE(f.Status().job().warnings_size() == 1);
  CHECK_THAT(f.Status().job().warnings(0).text(),
             Catch::Matchers::Contains("the learning rate is 0 from step 6 on"));
}

TEST_CASE("a loss that is not a number is null in the summary, and a warning says so") {
  JobFixture f(TwoWorkerPlan(1));
  f.Register(0, 10);
  f.Beat(0, 10);
  f.Step(std::numeric_limits<float>::quiet_NaN());
  const auto summary = nlohmann::json::parse(MakeSummary(f.job->plan(), f.job->record()));
  CHECK(summary["losses"][0].is_null());
  CHECK(summary["steps"] == 1);
  REQUIRE(summary["warnings"].size() == 1);
  CHECK_THAT(std::string(summary["warnings"][0]["text"]),
             Catch::StartsWith("the loss of step 0 is not a finite number. Remedy: "));
}

}  // namespace
}  // namespace lockstep::chief
