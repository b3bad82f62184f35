#include "chief/service/job_run.h"

#include <catch2/catch.hpp>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "chief/service/summary.h"
#include "common/base/exit_code.h"
#include "common/base/version.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/chief/support/manual_executor.h"
#include "tests/unit/chief/support/scripted_ps.h"

namespace lockstep::chief {
namespace {

constexpr uint32_t kLoss = 1;

JobPlan Plan(int64_t max_steps) {
  JobPlan plan;
  plan.cluster = {
      .ps = {"127.0.0.1:1"}, .workers = {"127.0.0.1:2", "127.0.0.1:3"}, .chief = "127.0.0.1:4"};
  plan.job.set_name("digits");
  plan.job.set_towers(1);
  plan.job.set_batch_per_tower(16);
  plan.job.mutable_sync()->set_replicas_to_aggregate(1);
  plan.placement.set_shards(1);
  plan.placement.add_variables()->set_name("fc/kernel");
  plan.placement.add_variables()->set_name("train/loss");
  plan.loss_variable = kLoss;
  plan.is_classifier = true;
  plan.max_steps = GlobalStep(max_steps);
  plan.epoch = Epoch(1);
  plan.learning_rate = [](GlobalStep) { return 0.1f; };
  return plan;
}

void EvaluateEvery(JobPlan* plan, int64_t steps) {
  plan->examples.test = 100;
  plan->job.mutable_evaluation()->set_every_steps(steps);
}

template <typename Reply>
using Got = std::shared_ptr<std::optional<absl::StatusOr<Reply>>>;

// One ps that answers what is not about steps at once, and two workers.
struct Fixture {
  explicit Fixture(JobPlan plan, PsProbe::Fetch fetch = nullptr) {
    JobRunOptions options{.job_id = 9, .patience = absl::Seconds(60), .fetch_status = fetch};
    run.emplace(
        std::move(plan), options, std::vector<PsControl*>{&ps}, &executor, &clock,
        [this] { ready = true; }, [this](absl::Status status) { ended = std::move(status); });
    run->Start();
    Settle();
  }

  void Settle() {
    executor.Run();
    while (ps_answers &&
           ps.get_view.size() + ps.set_view.size() + ps.create.size() + ps.releases.size() > 0) {
      if (ps.get_view.size() > 0) ps.get_view.Answer(SetViewReply());
      if (ps.set_view.size() > 0) ps.set_view.Answer(SetViewReply());
      if (ps.create.size() > 0) ps.create.Answer(CreateVariablesReply());
      if (ps.releases.size() > 0) ps.releases.Answer(ReleaseSnapshotReply());
      executor.Run();
    }
  }
  Got<RegisterTaskReply> Register(uint32_t worker, uint64_t incarnation) {
    RegisterTaskRequest request;
    request.set_worker(worker);
    request.set_incarnation(incarnation);
    request.set_cluster(run->plan().cluster.Canonical());
    request.set_version(kVersion);
    auto got = std::make_shared<std::optional<absl::StatusOr<RegisterTaskReply>>>();
    run->worker_calls()->Register(
        request, Answer<RegisterTaskReply>(
                     [got](absl::StatusOr<RegisterTaskReply> r) { *got = std::move(r); }));
    Settle();
    return got;
  }
  Got<HeartbeatReply> Beat(uint32_t worker, uint64_t incarnation,
                           const std::vector<EvaluationResult>& results = {}) {
    HeartbeatRequest request;
    request.set_job_id(9);
    request.set_worker(worker);
    request.set_incarnation(incarnation);
    for (const EvaluationResult& result : results) *request.add_results() = result;
    auto got = std::make_shared<std::optional<absl::StatusOr<HeartbeatReply>>>();
    run->worker_calls()->Heartbeat(
        request,
        Answer<HeartbeatReply>([got](absl::StatusOr<HeartbeatReply> r) { *got = std::move(r); }));
    Settle();
    return got;
  }
  void Pass(absl::Duration time) {
    for (absl::Duration t; t < time; t += absl::Milliseconds(100)) {
      clock.Advance(absl::Milliseconds(100));
      run->Tick();
      Settle();
    }
  }
  // The ps closes and commits a step.
  void Step(float loss = 1) {
    GrantReply reply;
    const int64_t step = ps.grants.front().step();
    reply.set_step(step);
    reply.set_shard_step(step + 1);
    reply.set_accepted(static_cast<uint64_t>(2 * (step + 1)));
    reply.add_statistics()->set_variable(kLoss);
    reply.mutable_statistics(0)->add_values(loss);
    ps.grants.Answer(reply);
    Settle();
  }
  ProcessStatus Status() {
    ProcessStatus status;
    run->FillStatus(&status);
    return status;
  }

  ScriptedPs ps;
  bool ps_answers = true;
  ManualExecutor executor;
  ManualClock clock;
  bool ready = false;
  std::optional<absl::Status> ended;
  std::optional<JobRun> run;
};

EvaluationResult Correct(const EvaluationLease& lease) {
  EvaluationResult result;
  result.set_lease(lease.id());
  result.set_examples(lease.end() - lease.begin());
  result.set_correct(lease.end() - lease.begin());
  result.set_loss_sum(25);
  return result;
}

TEST_CASE("a job goes from its first worker to its end, and everybody is told") {
  Fixture f(Plan(2));
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

  const auto summary = nlohmann::json::parse(MakeSummary(f.run->plan(), f.run->record()));
  CHECK(summary["steps"] == 2);
  CHECK(summary["losses"] == nlohmann::json({0.5, 0.25}));
  CHECK(summary["train_seconds"] == 4.0);
  CHECK(summary["examples_per_second"] == 8.0);
  CHECK(summary["accepted"] == 4);
  CHECK(summary["test_accuracy"].is_null());
  CHECK(summary["checkpoint"].is_null());
}

TEST_CASE("training waits for enough workers, and says who is missing") {
  JobPlan plan = Plan(2);
  plan.job.mutable_sync()->set_replicas_to_aggregate(2);
  Fixture f(plan);
  const auto first = f.Register(0, 10);
  CHECK(f.ps.grants.size() == 0);
  CHECK(f.Status().waiting_for() ==
        "1 of 2 needed workers are there; worker 1 (127.0.0.1:3) has not registered");
  const auto second = f.Register(1, 20);
  CHECK((**first)->ready());
  CHECK((**second)->ready());
  CHECK(f.ps.grants.size() == 2);
  CHECK(f.ps.set_view.all().back().members_size() == 2);
}

TEST_CASE("a start that waits for too long fails with 138 and leaves the ps to the next chief") {
  Fixture f(Plan(2));
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
  JobRun run(
      Plan(2), {.job_id = 1, .patience = absl::Seconds(20)}, {&ps}, &executor, &clock, [] {},
      [&](absl::Status status) { ended = std::move(status); });
  run.Start();
  for (int i = 0; i < 210; ++i) {
    clock.Advance(absl::Milliseconds(100));
    run.Tick();
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

TEST_CASE("an evaluation runs beside training, and the last one before the end") {
  JobPlan plan = Plan(4);
  EvaluateEvery(&plan, 2);
  Fixture f(plan);
  f.Register(0, 10);
  auto heartbeat = f.Beat(0, 10);
  CHECK_FALSE(f.ps.grants.at(0).keep_values());
  CHECK(f.ps.grants.at(1).keep_values());
  CHECK_FALSE(f.ps.grants.at(1).keep_slots());
  f.Step();
  f.Step();
  REQUIRE(heartbeat->has_value());
  REQUIRE((**heartbeat)->leases_size() == 1);
  const EvaluationLease first = (**heartbeat)->leases(0);
  CHECK(first.version() == 2);
  f.Step();
  f.Step();
  // Trained to the end, with one evaluation running and the last one waiting.
  CHECK(f.Status().state() == "evaluating");
  CHECK(f.ps.releases.all().empty());
  heartbeat = f.Beat(0, 10, {Correct(first)});
  REQUIRE((**heartbeat)->leases_size() == 1);
  const EvaluationLease second = (**heartbeat)->leases(0);
  CHECK(second.version() == 4);
  CHECK_FALSE(f.ended.has_value());
  heartbeat = f.Beat(0, 10, {Correct(second)});
  CHECK((**heartbeat)->finish());
  REQUIRE(f.ps.releases.all().size() == 2);
  CHECK(f.ps.releases.all()[0].version() == 2);
  CHECK(f.ps.releases.all()[1].version() == 4);
  const auto summary = nlohmann::json::parse(MakeSummary(f.run->plan(), f.run->record()));
  CHECK(summary["test_accuracy"] == 1.0);
  CHECK(summary["test_loss"] == 0.25);
  CHECK(summary["evaluations"].size() == 2);
  CHECK(summary["evaluations"][0]["step"] == 2);
}

TEST_CASE("an evaluation that comes while one runs is left out, and its version released") {
  JobPlan plan = Plan(10);
  EvaluateEvery(&plan, 2);
  Fixture f(plan);
  f.Register(0, 10);
  f.Beat(0, 10);
  for (int i = 0; i < 4; ++i) f.Step();
  REQUIRE(f.ps.releases.all().size() == 1);
  CHECK(f.ps.releases.all()[0].version() == 4);
}

TEST_CASE("a checkpoint is saved by every shard, and a failure does not stop training") {
  const test::TemporaryFolder folder;
  JobPlan plan = Plan(4);
  plan.job.mutable_checkpoint()->set_folder(folder.path());
  plan.job.mutable_checkpoint()->set_every_steps(2);
  Fixture f(plan);
  f.Register(0, 10);
  f.Beat(0, 10);
  CHECK(f.ps.grants.at(1).keep_slots());
  f.Step();
  f.Step();
  REQUIRE(f.ps.saves.size() == 1);
  CHECK(f.ps.saves.front().version() == 2);
  CHECK(f.ps.saves.front().folder() == folder.path() + "/ckpt-2");
  f.Step();
  f.Step();
  // The last one is not left out: it waits.
  CHECK(f.ps.saves.size() == 1);
  CHECK(f.Status().state() == "saving");
  f.ps.saves.Answer(absl::ResourceExhaustedError("disk full"));
  f.Settle();
  REQUIRE(f.ps.saves.size() == 1);
  CHECK(f.ps.saves.front().version() == 4);
  f.ps.saves.Answer(absl::ResourceExhaustedError("disk full"));
  f.Settle();
  f.Pass(absl::Seconds(2));  // for the second worker, who never comes
  f.ps.finishes.Answer(FinishReply());
  f.Settle();
  // A job without its last checkpoint is no success.
  REQUIRE(f.ended.has_value());
  CHECK_FALSE(f.ended->ok());
  CHECK(f.ps.releases.all().size() == 2);
}

TEST_CASE(
    "after ten seconds without a step the status names who is missing and what is waited for") {
  ProcessStatus asked;
  VariableStatus* pending = asked.mutable_shard()->add_pending();
  pending->set_name("fc/kernel");
  pending->set_have(0);
  pending->set_required(1);
  Fixture f(Plan(4), [asked](const std::string&) { return asked; });
  f.Register(0, 10);
  f.Beat(0, 10);
  f.Step();
  f.Pass(absl::Seconds(9));
  CHECK(f.Status().state() == "training");
  CHECK(f.Status().waiting_for().empty());
  f.Pass(absl::Seconds(2));
  const ProcessStatus status = f.Status();
  CHECK(status.state() == "waiting");
  CHECK(status.waiting_for().find("step 1 needs 1 gradients") != std::string::npos);
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

TEST_CASE("a member that is lost leaves the view of every shard") {
  Fixture f(Plan(4));
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

TEST_CASE("a ps that is lost is named, and ends the job after the patience") {
  Fixture f(Plan(4));
  f.Register(0, 10);
  for (int second = 0; second < 70 && !f.ended.has_value(); ++second) {
    while (f.ps.grants.size() > 0) {
      f.ps.grants.Answer(absl::UnavailableError("ps 0 (127.0.0.1:1) is not available: refused"));
      f.Settle();
    }
    if (second == 15) {
      CHECK(f.Status().waiting_for().find("ps 0 (127.0.0.1:1) is not available") !=
            std::string::npos);
      CHECK(f.Status().job().shards(0).state() == "unreachable");
    }
    f.Pass(absl::Seconds(1));
    f.Beat(0, 10);
  }
  REQUIRE(f.ended.has_value());
  CHECK(ExitCodeFor(*f.ended) == ExitCode::kPeersLost);
  CHECK(f.ps.finishes.all().size() == 1);
}

TEST_CASE("a worker's error ends the job for all") {
  Fixture f(Plan(4));
  f.Register(0, 10);
  f.Register(1, 20);
  const auto other = f.Beat(0, 10);
  ReportErrorRequest error;
  error.set_job_id(9);
  error.set_worker(1);
  error.set_incarnation(20);
  error.set_message("data gone");
  error.set_exit_code(66);
  f.run->worker_calls()->ReportError(
      error, Answer<ReportErrorReply>([](absl::StatusOr<ReportErrorReply>) {}));
  f.Settle();
  REQUIRE(other->has_value());
  CHECK((**other)->fail_exit_code() == 66);
  CHECK((**other)->fail().find("data gone") != std::string::npos);
  REQUIRE(f.ps.finishes.size() == 1);
  f.ps.finishes.Answer(FinishReply());
  f.Settle();
  CHECK(ExitCodeFor(*f.ended) == ExitCode::kInputNotFound);
}

TEST_CASE("a chief that is told to stop tells all, and waits for nobody for long") {
  Fixture f(Plan(4));
  f.Register(0, 10);
  f.Register(1, 20);
  f.run->Stop(WithExitCode(absl::CancelledError("interrupted"), ExitCode::kInterrupted));
  CHECK(f.ps.finishes.size() == 0);
  f.Pass(absl::Seconds(2.1));
  REQUIRE(f.ps.finishes.size() == 1);
  CHECK_FALSE(f.ended.has_value());
  f.Pass(absl::Seconds(2.1));
  REQUIRE(f.ended.has_value());
  CHECK(ExitCodeFor(*f.ended) == ExitCode::kInterrupted);
}

TEST_CASE("a loss that is not a number is null in the summary, and the rest is there") {
  Fixture f(Plan(1));
  f.Register(0, 10);
  f.Beat(0, 10);
  f.Step(std::numeric_limits<float>::quiet_NaN());
  const auto summary = nlohmann::json::parse(MakeSummary(f.run->plan(), f.run->record()));
  CHECK(summary["losses"][0].is_null());
  CHECK(summary["steps"] == 1);
}

}  // namespace
}  // namespace lockstep::chief
