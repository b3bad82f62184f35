#include "chief/job/summary.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

namespace lockstep::chief {
namespace {

JobPlan PlanOf(bool is_classifier, bool use_averages) {
  JobPlan plan;
  plan.is_classifier = is_classifier;
  plan.job.mutable_evaluation()->set_use_averages(use_averages);
  return plan;
}

const EvaluationTotals kTotals = {
    .version = GlobalStep(300), .examples = 360, .accuracy = 0.75, .loss = 2.0529};

TEST_CASE("The status tells a regression from a classifier, and averages from values") {
  const EvaluationSummary regression = ToStatus(PlanOf(false, true), kTotals);
  CHECK(regression.regression());
  CHECK(regression.averages());
  CHECK(regression.accuracy() == 0);
  CHECK(regression.loss() == 2.0529);
  CHECK(regression.step() == 300);
  CHECK(regression.examples() == 360);
  const EvaluationSummary classifier = ToStatus(PlanOf(true, false), kTotals);
  CHECK_FALSE(classifier.regression());
  CHECK_FALSE(classifier.averages());
  CHECK(classifier.accuracy() == 0.75);
}

TEST_CASE("The summary file has the test loss of a regression") {
  RunRecord record;
  record.evaluations = {kTotals};
  const auto summary = nlohmann::json::parse(MakeSummary(PlanOf(false, true), record));
  CHECK(summary["test_accuracy"].is_null());
  CHECK(summary["test_loss"] == 2.0529);
  CHECK(summary["test_bits_per_character"].is_null());
  CHECK(summary["evaluations"][0]["loss"] == 2.0529);
  CHECK(summary["evaluations"][0]["averages"] == true);
}

TEST_CASE("The summary file of a text has the loss of a character in bits") {
  RunRecord record;
  record.evaluations = {{.version = GlobalStep(300), .examples = 9, .accuracy = 0.5, .loss = 2}};
  JobPlan plan = PlanOf(true, false);
  plan.job.mutable_data()->mutable_text()->set_path("a.txt");
  const auto summary = nlohmann::json::parse(MakeSummary(plan, record));
  CHECK(summary["test_loss"] == 2.0);
  CHECK(summary["test_bits_per_character"].get<double>() == Approx(2.885390));
}

}  // namespace
}  // namespace lockstep::chief
