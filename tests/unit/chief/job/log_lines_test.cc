#include "chief/job/log_lines.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/exit_code.h"
#include "tests/unit/chief/job/job_fixture.h"

namespace lockstep::chief {
namespace {

using Catch::Matchers::Equals;
using Catch::Matchers::StartsWith;

JobPlan PlanOf(bool is_classifier, bool use_averages) {
  JobPlan plan;
  plan.is_classifier = is_classifier;
  plan.job.mutable_evaluation()->set_use_averages(use_averages);
  return plan;
}

const EvaluationTotals kTotals = {
    .version = GlobalStep(300), .examples = 360, .accuracy = 0.75, .loss = 2.0529};

TEST_CASE("The log has the test loss of a regression, and no accuracy") {
  CHECK(EvaluationLine(PlanOf(false, false), kTotals) ==
        "evaluation at step 300: test loss 2.0529, on 360 examples");
  CHECK(EvaluationLine(PlanOf(true, false), kTotals) ==
        "evaluation at step 300: test accuracy 75.00 %, test loss 2.0529, on 360 examples");
  CHECK(EvaluationLine(PlanOf(true, true), kTotals) ==
        "evaluation of the averages at step 300: test accuracy 75.00 %, test loss 2.0529, on 360 "
        "examples");
}

TEST_CASE("a start from a checkpoint of a model that has diverged says so") {
  JobPlan plan = TwoWorkerPlan(4);
  plan.start = GlobalStep(2);
  plan.restore_from = "/c/ckpt-2";
  plan.diverged = "/c/ckpt-2 has values that are infinite or NaN";
  JobFixture f(plan);
  REQUIRE(f.Status().job().warnings_size() == 1);
  CHECK(f.Status().job().warnings(0).text() ==
        "the job goes on after it has diverged: /c/ckpt-2 has values that are infinite or NaN");
}

TEST_CASE("the chief's lines have commas, units and no sign before a nan") {
  JobPlan plan = TwoWorkerPlan(20000);
  RunRecord record;
  record.global_step = GlobalStep(12000);
  record.loss = -std::numeric_limits<float>::quiet_NaN();
  record.rate.Add(GlobalStep(11000), absl::Seconds(10));
  record.rate.Add(GlobalStep(12000), absl::Seconds(20));
  CHECK_THAT(ProgressLine(plan, record, absl::Seconds(20)),
             Equals("step 12,000 of 20,000, loss nan, 1,600 examples/s, 1:20 left"));
  CHECK_THAT(EvaluationLine(plan, {GlobalStep(12000), 1500, 0.5, -std::nan("")}),
             Equals("evaluation at step 12,000: test accuracy 50.00 %, test loss nan, on 1,500 "
                    "examples"));
  plan.job.mutable_evaluation()->set_use_averages(true);
  CHECK_THAT(
      EvaluationLine(plan, {GlobalStep(3), 1, 0.5, 0.25}),
      Equals("evaluation of the averages at step 3: test accuracy 50.00 %, test loss 0.2500, "
             "on 1 example"));
}

TEST_CASE("the progress line has the examples of steps that go on with fewer gradients") {
  JobPlan plan = TwoWorkerPlan(100);
  plan.job.mutable_sync()->set_replicas_to_aggregate(4);
  RunRecord record;
  record.required = 1;
  record.global_step = GlobalStep(20);
  record.rate.Add(GlobalStep(10), absl::Seconds(0));
  record.rate.Add(GlobalStep(20), absl::Seconds(10));
  CHECK_THAT(ProgressLine(plan, record, absl::Seconds(10)),
             Equals("step 20 of 100, loss 0.0000, 16.0 examples/s, 1:20 left"));
  record.required = 4;
  CHECK_THAT(ProgressLine(plan, record, absl::Seconds(10)),
             Equals("step 20 of 100, loss 0.0000, 64.0 examples/s, 1:20 left"));
}

TEST_CASE("a variable that lies in parts on several ps is one variable, and the loss is none") {
  JobPlan plan = TwoWorkerPlan(4);
  plan.cluster.ps = {"127.0.0.1:1", "127.0.0.1:5"};
  plan.placement.clear_variables();
  for (uint32_t part = 0; part < 4; ++part) {
    VariableSpec* spec = plan.placement.add_variables();
    spec->set_name(absl::StrCat("table#", part));
    spec->mutable_part()->set_of("table");
    spec->set_id(part);
    spec->set_shard(part % 2);
  }
  VariableSpec* loss = plan.placement.add_variables();
  loss->set_name("train/loss");
  loss->set_id(4);
  plan.loss_variable = 4;
  CHECK_THAT(ShardsReadyLine(plan), StartsWith("2 ps are ready: 1 variable, at most "));
}

TEST_CASE("a chief that leaves the job to the next one does not say that the job ends") {
  const absl::Status refused = absl::FailedPreconditionError("ps 0 is at step 2");
  CHECK(EndLine(refused, Told::kEverybody, false) == "the job ends with an error");
  CHECK(EndLine(refused, Told::kNobody, false) ==
        "this chief ends and leaves ps and workers to the next one: ps 0 is at step 2");
  CHECK(EndLine(refused, Told::kNobody, true).empty());
}

TEST_CASE("a lack of workers ends a job with the code of lost peers, and with a remedy") {
  const absl::Status aborts = TooFewWorkers("step 1: worker 1 was lost", OnShortage::kAbort);
  CHECK(ExitCodeFor(aborts) == ExitCode::kPeersLost);
  CHECK(aborts.message() ==
        "step 1: worker 1 was lost. Remedy: start the cluster again, the chief with --resume, or "
        "set sync.quorum_policy to WAIT");
  CHECK(TooFewWorkers("no data", OnShortage::kShrink).message() ==
        "no data. Remedy: give the workers more data");
}

}  // namespace
}  // namespace lockstep::chief
