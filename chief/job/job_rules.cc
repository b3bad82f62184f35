#include "chief/job/job_rules.h"

#include <algorithm>
#include <set>
#include <string>

namespace lockstep::chief {
namespace {

constexpr absl::Duration kLeasePatience = absl::Seconds(30);

OnShortage OnShortageOf(QuorumPolicy policy) {
  switch (policy) {
    case SHRINK:
      return OnShortage::kShrink;
    case ABORT:
      return OnShortage::kAbort;
    default:
      return OnShortage::kWait;
  }
}

bool IsLoss(const JobPlan& plan, const VariableSpec& variable) {
  return variable.id() == plan.loss_variable && !variable.trainable();
}

const std::string& ModelName(const VariableSpec& variable) {
  return variable.has_part() ? variable.part().of() : variable.name();
}

}  // namespace

uint32_t CountModelVariables(const JobPlan& plan) {
  std::set<std::string> names;
  for (const VariableSpec& variable : plan.placement.variables()) {
    if (!IsLoss(plan, variable)) names.insert(ModelName(variable));
  }
  return static_cast<uint32_t>(names.size());
}

std::vector<uint32_t> CountVariables(const JobPlan& plan) {
  std::vector<std::set<std::string>> names(plan.cluster.ps.size());
  for (const VariableSpec& variable : plan.placement.variables()) {
    if (!IsLoss(plan, variable)) names[variable.shard()].insert(ModelName(variable));
  }
  std::vector<uint32_t> counts;
  for (const std::set<std::string>& shard : names) {
    counts.push_back(static_cast<uint32_t>(shard.size()));
  }
  return counts;
}

std::optional<EvaluationQueue> MakeEvaluationQueue(const JobPlan& plan) {
  if (plan.examples.test == 0) return std::nullopt;
  const int64_t workers = static_cast<int64_t>(plan.cluster.workers.size());
  return std::make_optional<EvaluationQueue>(
      plan.examples.test, RangeSize(plan.examples.test, workers, plan.job.evaluation().batch()),
      kLeasePatience, plan.labels_per_example);
}

Milestones EvaluateAt(const JobPlan& plan) {
  if (plan.examples.test == 0) return {.end = plan.max_steps};
  return {.every_steps = plan.job.evaluation().every_steps(),
          .at_end = !plan.job.evaluation().not_at_end(),
          .end = plan.max_steps};
}

Milestones SaveAt(const JobPlan& plan) {
  if (plan.job.checkpoint().folder().empty()) return {.end = plan.max_steps};
  return {
      .every_steps = plan.job.checkpoint().every_steps(), .at_end = true, .end = plan.max_steps};
}

QuorumRules QuorumRulesOf(const JobPlan& plan) {
  const SyncDef& sync = plan.job.sync();
  const int64_t tokens = sync.has_init_tokens() ? sync.init_tokens() : -1;
  return {.on_shortage = OnShortageOf(sync.quorum_policy()),
          .aggregate = plan.required(),
          .counts_tokens = sync.token_policy() == FIFO,
          .start = plan.start,
          .initial_tokens = tokens == -1 ? plan.required() : std::max<int64_t>(tokens, 0),
          .tokens_per_step = std::max<int64_t>(plan.cluster.workers.size(), plan.required())};
}

uint32_t ReplicasToAggregate(const JobPlan& plan, const RunRecord& record) {
  return record.replica_views.empty() ? plan.required() : record.replica_views.back().aggregate;
}

double ExamplesPerStep(const JobPlan& plan, const RunRecord& record) {
  const double share = plan.is_elastic() ? 1.0 : 1.0 * record.required / plan.required();
  return static_cast<double>(plan.examples_per_step()) * share;
}

ReplicaRules ReplicaRulesOf(const JobPlan& plan) {
  const SyncDef& sync = plan.job.sync();
  return {.min_replicas = sync.min_replicas(),
          .aggregate = sync.has_replicas_to_aggregate()
                           ? std::make_optional(static_cast<uint32_t>(sync.replicas_to_aggregate()))
                           : std::nullopt,
          .global_batch = plan.job.global_batch(),
          .towers = plan.job.towers()};
}

}  // namespace lockstep::chief
