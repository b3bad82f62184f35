// What a run does with the versions that it keeps: evaluations and checkpoints.
#include <catch2/catch.hpp>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "chief/job/summary.h"
#include "common/base/exit_code.h"
#include "tests/support/doc_fields.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/chief/job/job_fixture.h"

namespace lockstep::chief {
namespace {

void EvaluateEvery(JobPlan* plan, int64_t steps) {
  plan->examples.test = 100;
  plan->job.mutable_evaluation()->set_every_steps(steps);
}

void SaveEvery(JobPlan* plan, const test::TemporaryFolder& folder, int64_t steps) {
  plan->job.mutable_checkpoint()->set_folder(folder.path());
  plan->job.mutable_checkpoint()->set_every_steps(steps);
}

EvaluationResult Correct(const EvaluationLease& lease) {
  EvaluationResult result;
  result.set_lease(lease.id());
  result.set_examples(lease.end() - lease.begin());
  result.set_correct(lease.end() - lease.begin());
  result.set_loss_sum(25);
  return result;
}

TEST_CASE("an evaluation runs beside training, and the last one before the end") {
  JobPlan plan = TwoWorkerPlan(4);
  EvaluateEvery(&plan, 2);
  JobFixture f(plan);
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
  const auto summary = nlohmann::json::parse(MakeSummary(f.job->plan(), f.job->record()));
  CHECK(summary["test_accuracy"] == 1.0);
  CHECK(summary["test_loss"] == 0.25);
  CHECK(summary["evaluations"].size() == 2);
  CHECK(summary["evaluations"][0]["step"] == 2);
}

TEST_CASE("a job that goes back to a checkpoint shows what was evaluated before") {
  JobPlan plan = TwoWorkerPlan(10);
  EvaluateEvery(&plan, 2);
  JobFixture f(plan);
  f.Register(0, 10);
  const auto heartbeat = f.Beat(0, 10);
  f.Step();
  f.Step();
  f.Beat(0, 10, {Correct((**heartbeat)->leases(0))});
  plan.start = GlobalStep(3);
  JobController next(
      plan, {.job_id = 9}, {&f.ps}, &f.executor, &f.clock, [] {}, [](const absl::Status&) {});
  next.Inherit(&*f.job);
  ProcessStatus status;
  next.FillStatus(&status);
  REQUIRE(status.job().evaluations_size() == 1);
  CHECK(status.job().evaluations(0).step() == 2);
  CHECK(nlohmann::json::parse(MakeSummary(plan, next.record()))["test_accuracy"] == 1.0);
}

TEST_CASE("docs/status.md has every field of the summary, and no other") {
  JobPlan plan = TwoWorkerPlan(2);
  EvaluateEvery(&plan, 1);
  JobFixture f(plan);
  f.Register(0, 10);
  const auto heartbeat = f.Beat(0, 10);
  f.Step();
  f.Beat(0, 10, {Correct((**heartbeat)->leases(0))});
  f.Beat(0, 10);
  f.Step(std::numeric_limits<float>::infinity());
  const auto summary = nlohmann::json::parse(MakeSummary(f.job->plan(), f.job->record()));
  const auto check = [](const nlohmann::json& object, const std::string& heading) {
    INFO(heading);
    std::set<std::string> fields;
    for (const auto& [name, value] : object.items()) fields.insert(name);
    const std::vector<std::string> documented = test::DocumentedFields("docs/status.md", heading);
    CHECK(std::set<std::string>(documented.begin(), documented.end()) == fields);
    CHECK(documented.size() == fields.size());
  };
  check(summary, "Summary");
  REQUIRE(summary["evaluations"].size() == 1);
  check(summary["evaluations"][0], "Summary: `evaluations`");
  REQUIRE(summary["warnings"].size() == 1);
  check(summary["warnings"][0], "Summary: `warnings`");
}

TEST_CASE("an evaluation that comes while one runs is left out, and its version released") {
  JobPlan plan = TwoWorkerPlan(10);
  EvaluateEvery(&plan, 2);
  JobFixture f(plan);
  f.Register(0, 10);
  f.Beat(0, 10);
  for (int i = 0; i < 4; ++i) f.Step();
  REQUIRE(f.ps.releases.all().size() == 1);
  CHECK(f.ps.releases.all()[0].version() == 4);
}

TEST_CASE("a checkpoint is saved by every shard, and a failure does not stop training") {
  const test::TemporaryFolder folder;
  JobPlan plan = TwoWorkerPlan(4);
  SaveEvery(&plan, folder, 2);
  JobFixture f(plan, {.waits_for_disk = true});
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
  CHECK(f.Status().job().checkpoint_error() == "no checkpoint at step 2: disk full");
  f.ps.saves.Answer(absl::ResourceExhaustedError("disk full"));
  f.Settle();
  CHECK(f.Status().job().checkpoint_error() == "no checkpoint at step 4: disk full");
  REQUIRE(f.ps.releases.all().size() == 1);
  CHECK(f.ps.releases.all()[0].version() == 2);
}

TEST_CASE("a last save that fails is tried again, then the ps keep the model for the next chief") {
  JobPlan plan = TwoWorkerPlan(1);
  plan.job.mutable_checkpoint()->set_folder("/nowhere");
  JobFixture f(plan, {.waits_for_disk = true});
  f.Register(0, 10);
  f.Step();
  int saves = 0;
  for (int tenth = 0; tenth < 900 && !f.ended.has_value(); ++tenth) {
    f.Beat(0, 10);
    if (f.ps.saves.size() > 0) {
      ++saves;
      f.ps.saves.Answer(absl::ResourceExhaustedError("disk full"));
      f.Settle();
    }
    if (tenth == 300) {
      CHECK(f.Status().state() == "waiting");
      CHECK(f.Status().waiting_for().find("disk full") != std::string::npos);
    }
    f.Pass(absl::Milliseconds(100));
  }
  CHECK(saves > 20);
  REQUIRE(f.ended.has_value());
  CHECK(ExitCodeFor(*f.ended) == ExitCode::kPeersLost);
  CHECK(f.ended->message().find("disk full. The ps keep the model. Remedy: ") != std::string::npos);
  CHECK(f.clock.Monotonic() >= absl::Seconds(60));
  CHECK(f.ps.releases.all().empty());
  CHECK(f.ps.finishes.all().empty());
}

TEST_CASE("time in which the chief stands still is not of its patience with the last save") {
  JobPlan plan = TwoWorkerPlan(1);
  plan.job.mutable_checkpoint()->set_folder("/nowhere");
  JobFixture f(plan, {.waits_for_disk = true});
  f.Register(0, 10);
  f.Step();
  int tenth = 0;
  for (; tenth < 900 && !f.ended.has_value(); ++tenth) {
    if (tenth == 300) f.clock.Advance(absl::Seconds(200));
    f.Beat(0, 10);
    if (f.ps.saves.size() > 0) f.ps.saves.Answer(absl::ResourceExhaustedError("disk full"));
    f.Settle();
    f.Pass(absl::Milliseconds(100));
  }
  CHECK(tenth >= 600);
  REQUIRE(f.ended.has_value());
  CHECK(ExitCodeFor(*f.ended) == ExitCode::kPeersLost);
}

TEST_CASE("a chief whose save is refused as another one's ends with 80 and tells nobody") {
  const test::TemporaryFolder folder;
  JobPlan plan = TwoWorkerPlan(4);
  SaveEvery(&plan, folder, 2);
  const bool is_leaving = GENERATE(false, true);
  JobFixture f(plan);
  f.Register(0, 10);
  f.Beat(0, 10);
  f.Step();
  f.Step();
  if (is_leaving) f.job->Stop(absl::CancelledError("told to end"));
  f.ps.saves.Answer(absl::AbortedError("the folder belongs to job 7"));
  f.Settle();
  const auto heartbeat = f.Beat(0, 10);
  f.Pass(absl::Seconds(5));
  REQUIRE(f.ended.has_value());
  CHECK(ExitCodeFor(*f.ended) == ExitCode::kFenced);
  REQUIRE(heartbeat->has_value());
  CHECK_FALSE((**heartbeat)->finish());
  CHECK((**heartbeat)->fail().empty());
  CHECK(f.ps.finishes.all().empty());
  CHECK(f.ps.releases.all().empty());
}

TEST_CASE("a version that a later checkpoint has superseded is released, and is no failure") {
  const test::TemporaryFolder folder;
  JobPlan plan = TwoWorkerPlan(4);
  SaveEvery(&plan, folder, 2);
  JobFixture f(plan, {.waits_for_disk = true});
  f.Register(0, 10);
  f.Beat(0, 10);
  f.Step();
  f.Step();
  f.ps.saves.Answer(absl::AlreadyExistsError("LATEST does not go back"));
  f.Settle();
  REQUIRE(f.ps.releases.all().size() == 1);
  CHECK(f.ps.releases.all()[0].version() == 2);
  CHECK(f.Status().job().checkpoint_error().empty());
  CHECK(f.job->record().checkpoint.empty());
  CHECK_FALSE(f.ended.has_value());
  f.Step();
  f.Step();
  CHECK(f.ps.saves.front().version() == 4);
}

TEST_CASE("a version whose release was lost is released again") {
  JobPlan plan = TwoWorkerPlan(10);
  EvaluateEvery(&plan, 2);
  JobFixture f(plan);
  f.Register(0, 10);
  f.Beat(0, 10);
  f.ps_answers = false;
  for (int i = 0; i < 4; ++i) f.Step();
  REQUIRE(f.ps.releases.size() == 1);
  f.ps.releases.Answer(absl::UnavailableError("ps 0 is not available"));
  f.Settle();
  f.Pass(absl::Seconds(1));
  REQUIRE(f.ps.releases.size() == 1);
  CHECK(f.ps.releases.front().version() == 4);
}

}  // namespace
}  // namespace lockstep::chief
