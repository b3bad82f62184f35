#include "chief/service/summary.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace lockstep::chief {
namespace {

nlohmann::json Number(double value) {
  return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json(nullptr);
}

nlohmann::json Accuracy(const JobPlan& plan, const EvaluationTotals& totals) {
  return plan.is_classifier ? Number(totals.accuracy) : nlohmann::json(nullptr);
}

}  // namespace

std::string MakeSummary(const JobPlan& plan, const RunRecord& record) {
  nlohmann::json summary;
  summary["test_accuracy"] = nullptr;
  summary["test_loss"] = nullptr;
  if (!record.evaluations.empty()) {
    summary["test_accuracy"] = Accuracy(plan, record.evaluations.back());
    summary["test_loss"] = Number(record.evaluations.back().loss);
  }
  const int64_t steps = record.global_step.value() - record.start.value();
  const double seconds = absl::ToDoubleSeconds(record.last_commit - record.began);
  const double examples = static_cast<double>(steps * plan.examples_per_step());
  summary["steps"] = record.global_step.value();
  summary["start_step"] = record.start.value();
  summary["train_seconds"] = seconds;
  summary["examples_per_second"] = seconds > 0 ? Number(examples / seconds) : nlohmann::json(0);
  summary["accepted"] = record.accepted;
  summary["stale"] = record.stale;
  summary["checkpoint"] =
      record.checkpoint.empty() ? nlohmann::json(nullptr) : nlohmann::json(record.checkpoint);
  summary["evaluations"] = nlohmann::json::array();
  for (const EvaluationTotals& totals : record.evaluations) {
    summary["evaluations"].push_back({{"step", totals.version.value()},
                                      {"examples", totals.examples},
                                      {"accuracy", Accuracy(plan, totals)},
                                      {"loss", Number(totals.loss)},
                                      {"averages", plan.job.evaluation().use_averages()}});
  }
  if (!record.losses.empty()) {
    summary["losses"] = nlohmann::json::array();
    for (float loss : record.losses) summary["losses"].push_back(Number(loss));
  }
  // Text that is not UTF-8 can only come from a path; it must not cost the summary.
  return summary.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string ProgressLine(const JobPlan& plan, const RunRecord& record, absl::Duration now) {
  const double steps_per_second = record.rate.StepsPerSecond(now);
  std::string line =
      absl::StrFormat("step %d of %d, loss %.4f, %.0f examples/s", record.global_step.value(),
                      plan.max_steps.value(), record.loss,
                      steps_per_second * static_cast<double>(plan.examples_per_step()));
  if (steps_per_second > 0) {
    const int64_t left = plan.max_steps.value() - record.global_step.value();
    absl::StrAppend(&line,
                    absl::StrFormat(", %.0f s left", static_cast<double>(left) / steps_per_second));
  }
  return line;
}

EvaluationSummary ToStatus(const JobPlan& plan, const EvaluationTotals& totals) {
  EvaluationSummary summary;
  summary.set_step(totals.version.value());
  summary.set_examples(totals.examples);
  if (plan.is_classifier) summary.set_accuracy(totals.accuracy);
  summary.set_loss(totals.loss);
  summary.set_averages(plan.job.evaluation().use_averages());
  summary.set_regression(!plan.is_classifier);
  return summary;
}

std::string EvaluationLine(const JobPlan& plan, const EvaluationTotals& totals) {
  return absl::StrCat(
      "evaluation ", plan.job.evaluation().use_averages() ? "of the averages " : "", "at step ",
      totals.version.value(), ": ",
      plan.is_classifier ? absl::StrFormat("test accuracy %.2f %%, ", 100 * totals.accuracy) : "",
      absl::StrFormat("test loss %.4f", totals.loss), ", on ", totals.examples, " examples");
}

}  // namespace lockstep::chief
