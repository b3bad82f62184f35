// What a run does with the versions that it keeps: evaluations and checkpoints.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "chief/service/summary.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/chief/service/job_run_fixture.h"

namespace lockstep::chief {
namespace {

void EvaluateEvery(JobPlan* plan, int64_t steps) {
  plan->examples.test = 100;
  plan->job.mutable_evaluation()->set_every_steps(steps);
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
  JobRunFixture f(plan);
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
  JobPlan plan = TwoWorkerPlan(10);
  EvaluateEvery(&plan, 2);
  JobRunFixture f(plan);
  f.Register(0, 10);
  f.Beat(0, 10);
  for (int i = 0; i < 4; ++i) f.Step();
  REQUIRE(f.ps.releases.all().size() == 1);
  CHECK(f.ps.releases.all()[0].version() == 4);
}

TEST_CASE("a checkpoint is saved by every shard, and a failure does not stop training") {
  const test::TemporaryFolder folder;
  JobPlan plan = TwoWorkerPlan(4);
  plan.job.mutable_checkpoint()->set_folder(folder.path());
  plan.job.mutable_checkpoint()->set_every_steps(2);
  JobRunFixture f(plan);
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

}  // namespace
}  // namespace lockstep::chief
