#include "chief/job/summary.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>

namespace lockstep::chief {
namespace {

nlohmann::json Number(double value) {
  return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json(nullptr);
}

// Of a text, whose loss is that of a character in nats.
nlohmann::json BitsPerCharacter(const JobPlan& plan, const EvaluationTotals& totals) {
  return plan.job.data().has_text() ? Number(totals.loss / std::numbers::ln2)
                                    : nlohmann::json(nullptr);
}

nlohmann::json ReplicaViewsJson(const RunRecord& record) {
  nlohmann::json views = nlohmann::json::array();
  for (const ReplicaView& view : record.replica_views) {
    nlohmann::json workers = nlohmann::json::array();
    for (const WorkerIndex worker : view.workers) workers.push_back(worker.value());
    views.push_back({{"number", view.number},
                     {"step", view.first.value()},
                     {"workers", std::move(workers)},
                     {"replicas_to_aggregate", view.aggregate}});
  }
  return views;
}

nlohmann::json Accuracy(const JobPlan& plan, const EvaluationTotals& totals) {
  return plan.is_classifier ? Number(totals.accuracy) : nlohmann::json(nullptr);
}

}  // namespace

uint32_t VariablesPerGradient(const JobPlan& plan) {
  const google::protobuf::RepeatedField<int64_t>& turns = plan.placement.turns();
  int64_t variables = 0;  // of all steps of a cycle of turns
  int64_t cycle = 0;
  for (const int64_t steps : turns) cycle += steps;
  for (const VariableSpec& variable : plan.placement.variables()) {
    if (variable.frozen() || variable.replicated()) continue;
    const bool is_in_turns = variable.loss() > 0;
    variables += is_in_turns ? turns.Get(static_cast<int>(variable.loss()) - 1)
                             : std::max<int64_t>(cycle, 1);
  }
  cycle = std::max<int64_t>(cycle, 1);
  return static_cast<uint32_t>((variables + cycle / 2) / cycle);
}

std::string MakeSummary(const JobPlan& plan, const RunRecord& record) {
  nlohmann::json summary;
  summary["test_accuracy"] = nullptr;
  summary["test_loss"] = nullptr;
  summary["test_bits_per_character"] = nullptr;
  summary["test_averages"] = plan.job.evaluation().use_averages();
  if (!record.evaluations.empty()) {
    summary["test_accuracy"] = Accuracy(plan, record.evaluations.back());
    summary["test_loss"] = Number(record.evaluations.back().loss);
    summary["test_bits_per_character"] = BitsPerCharacter(plan, record.evaluations.back());
  }
  const int64_t steps = record.global_step.value() - record.start.value();
  const double seconds = absl::ToDoubleSeconds(record.last_commit - record.began);
  const double examples = static_cast<double>(steps * plan.examples_per_step());
  summary["loss"] = steps > 0 ? Number(record.loss) : nlohmann::json(nullptr);
  summary["steps"] = record.global_step.value();
  summary["start_step"] = record.start.value();
  summary["train_seconds"] = seconds;
  summary["examples_per_second"] = seconds > 0 ? Number(examples / seconds) : nlohmann::json(0);
  summary["accepted"] = record.accepted;
  summary["stale"] = record.stale;
  summary["variables_per_gradient"] = VariablesPerGradient(plan);
  summary["checkpoint"] =
      record.checkpoint.empty() ? nlohmann::json(nullptr) : nlohmann::json(record.checkpoint);
  summary["evaluations"] = nlohmann::json::array();
  for (const EvaluationTotals& totals : record.evaluations) {
    summary["evaluations"].push_back({{"step", totals.version.value()},
                                      {"examples", totals.examples},
                                      {"accuracy", Accuracy(plan, totals)},
                                      {"loss", Number(totals.loss)},
                                      {"averages", plan.job.evaluation().use_averages()},
                                      {"regression", !plan.is_classifier}});
  }
  summary["replica_views"] = ReplicaViewsJson(record);
  summary["warnings"] = nlohmann::json::array();
  for (const JobWarnings::Warning& warning : record.warnings.newest()) {
    summary["warnings"].push_back({{"number", warning.number}, {"text", warning.text}});
  }
  if (!record.losses.empty()) {
    summary["losses"] = nlohmann::json::array();
    for (float loss : record.losses) summary["losses"].push_back(Number(loss));
  }
  // Text that is not UTF-8 can only come from a path; it must not cost the summary.
  return summary.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
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

EvaluatedVersion ToKept(const EvaluationTotals& totals) {
  EvaluatedVersion kept;
  kept.set_version(totals.version.value());
  kept.set_examples(totals.examples);
  kept.set_accuracy(totals.accuracy);
  kept.set_loss(totals.loss);
  return kept;
}

EvaluationTotals FromKept(const EvaluatedVersion& kept) {
  return {GlobalStep(kept.version()), kept.examples(), kept.accuracy(), kept.loss()};
}

}  // namespace lockstep::chief
