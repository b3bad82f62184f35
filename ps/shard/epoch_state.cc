#include "ps/shard/epoch_state.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/checked.h"
#include "common/base/limits.h"
#include "common/base/status_macros.h"
#include "common/optimizer_proto/learning_rate.h"
#include "common/optimizer_proto/update_rule_of.h"
#include "ps/shard/memory_need.h"
#include "ps/shard/variable_initializer.h"

namespace lockstep::ps {
namespace {

bool KeepsAverage(const VariablePlan& plan, const CatalogEntry& entry) {
  return entry.trainable && !entry.is_frozen && IsAveraged(plan.optimizer, WholeName(entry));
}

RuleOfVariable RuleOf(const VariablePlan& plan, const EpochState& state,
                      const CatalogEntry& entry) {
  const bool is_averaged = KeepsAverage(plan, entry);
  return {is_averaged ? state.averaged_rule.get() : state.rule.get(), is_averaged};
}

LentMemory MakeValueMemory(const VariablePlan& plan, const EpochState& state,
                           const ShardOptions& options) {
  if (!plan.shared_memory || options.make_value_memory == nullptr) return {};
  uint64_t bytes = 0;
  for (size_t i = 0; i < state.catalog.size(); ++i) {
    const CatalogEntry& entry = state.catalog[i];
    bytes += NumSharedBuffers(entry, *RuleOf(plan, state, entry).rule) *
             SharedBufferBytes(entry.num_bytes);
  }
  if (bytes == 0) return {};
  return options.make_value_memory(bytes).value_or(LentMemory());
}

// From `*used` on, which moves behind them.
std::vector<SharedBuffer> SharedBuffersFor(const CatalogEntry& entry, const UpdateRule& rule,
                                           const LentMemory& memory, uint64_t* used) {
  std::vector<SharedBuffer> shared;
  if (memory.bytes.empty()) return shared;
  for (size_t i = 0; i < NumSharedBuffers(entry, rule); ++i) {
    shared.push_back({memory.bytes.data() + *used, memory.owner});
    *used += SharedBufferBytes(entry.num_bytes);
  }
  return shared;
}

// All gradients that can be in hand at once: one per replica, and with a queue as many more as it
// hands out `tokens` for one step.
absl::StatusOr<uint64_t> WholeBudget(const VariablePlan& plan, uint64_t bytes, int64_t tokens) {
  const uint64_t copies = uint64_t{plan.total_num_replicas} + static_cast<uint64_t>(tokens);
  const std::optional<uint64_t> budget = CheckedMultiplyBytes(copies, bytes);
  if (budget.has_value()) return *budget;
  return absl::InvalidArgumentError(
      absl::StrCat("gradients of ", plan.total_num_replicas, " replicas (total_num_replicas) and ",
                   tokens, " tokens, ", bytes, " bytes each, have more bytes than can be counted"));
}

absl::StatusOr<HeldBudget> MakeBudget(const VariablePlan& plan, const Catalog& catalog,
                                      uint64_t budget, int64_t tokens) {
  std::vector<HeldBudget::Kind> kinds;
  const CatalogEntry* largest = nullptr;  // dense
  uint64_t whole = 0;
  for (size_t i = 0; i < catalog.size(); ++i) {
    const CatalogEntry& entry = catalog[i];
    if (entry.is_frozen) {
      kinds.push_back({.is_frozen = true});
      continue;
    }
    kinds.push_back({entry.shape, entry.num_bytes, entry.is_sparse});
    const auto sum = CheckedAddBytes(whole, entry.MostGradientBytes());
    if (!sum.has_value()) {
      return absl::InvalidArgumentError(
          absl::StrCat(Quoted(entry),
                       ": with its gradients those of the shard have more bytes than "
                       "can be counted"));
    }
    whole = *sum;
    if (entry.is_sparse) continue;
    if (largest == nullptr || entry.num_bytes > largest->num_bytes) largest = &entry;
  }
  if (budget == 0) {
    LOCKSTEP_ASSIGN_OR_RETURN(budget, WholeBudget(plan, whole, tokens));
  } else if (largest != nullptr && budget / plan.replicas_to_aggregate < largest->num_bytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the budget for held gradients is ", budget, " bytes: expected at least ",
        plan.replicas_to_aggregate, " gradients (replicas_to_aggregate) of variable \"",
        largest->name, "\" with ", largest->num_bytes, " bytes each"));
  }
  return HeldBudget(std::move(kinds), budget, plan.replicas_to_aggregate);
}

CountRule CountRuleOf(const VariablePlan& plan, std::optional<GlobalStep> end) {
  if (!plan.asynchronous) {
    return plan.token_policy == FIFO ? CountRule::kEveryGradient : CountRule::kOncePerReplica;
  }
  CountRule rule = CountRule::kOneByOne;
  rule.max_staleness = plan.max_staleness;
  rule.end = end;
  return rule;
}

std::optional<GlobalStep> EndOf(const VariablePlan& plan) {
  return plan.end_step == GlobalStep() ? std::nullopt : std::optional(plan.end_step);
}

absl::Status CheckSteps(const VariablePlan& plan) {
  for (const auto& [field, step] :
       {std::pair("start_step", plan.start_step), std::pair("end_step", plan.end_step)}) {
    if (step.value() >= 0 && step.value() <= limits::kMaxStep) continue;
    return absl::InvalidArgumentError(absl::StrCat(field, ": expected a step from 0 to ",
                                                   limits::kMaxStep, ", got ", step.value()));
  }
  return absl::OkStatus();
}

absl::Status CheckAsynchronous(const VariablePlan& plan) {
  if (!plan.asynchronous) {
    if (!plan.max_staleness.has_value() && !EndOf(plan).has_value()) return absl::OkStatus();
    return absl::InvalidArgumentError("max_staleness and end_step: only of an asynchronous job");
  }
  if (plan.max_staleness.value_or(0) < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("max_staleness: expected 0 or more, got ", *plan.max_staleness));
  }
  if (!EndOf(plan).has_value() || plan.end_step > plan.start_step) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("end_step: expected more than start_step ",
                                                 plan.start_step.value(), ", got ",
                                                 plan.end_step.value()));
}

}  // namespace

absl::StatusOr<std::unique_ptr<EpochState>> CreateEpochState(const VariablePlan& plan,
                                                             ShardIndex shard,
                                                             const ShardOptions& options) {
  if (plan.replicas_to_aggregate == 0 || plan.total_num_replicas == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected replicas, got replicas_to_aggregate ", plan.replicas_to_aggregate,
                     " of total_num_replicas ", plan.total_num_replicas));
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckSteps(plan));
  LOCKSTEP_RETURN_IF_ERROR(CheckAsynchronous(plan));
  const bool is_fifo = plan.token_policy == FIFO;
  if (!is_fifo && plan.replicas_to_aggregate > plan.total_num_replicas) {
    return absl::InvalidArgumentError(
        absl::StrCat("PER_REPLICA cannot aggregate ", plan.replicas_to_aggregate, " of ",
                     plan.total_num_replicas, " replicas: each counts once per step"));
  }
  FifoCounts counts;
  if (is_fifo) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        counts,
        CountFifoTokens(plan.total_num_replicas, plan.replicas_to_aggregate, plan.init_tokens));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(Catalog catalog, Catalog::Create(plan.placement, shard));
  LOCKSTEP_ASSIGN_OR_RETURN(auto plain_rule, UpdateRuleOf(plan.optimizer));
  LOCKSTEP_ASSIGN_OR_RETURN(auto averaged_rule, AveragedRuleOf(plan.optimizer));
  const auto rule_of = [&](const CatalogEntry& entry) -> const UpdateRule& {
    return KeepsAverage(plan, entry) ? *averaged_rule : *plain_rule;
  };
  const bool knows_memory = options.available_memory != nullptr;
  LOCKSTEP_RETURN_IF_ERROR(
      CheckMemoryNeed(catalog, rule_of,
                      knows_memory ? options.available_memory() : std::optional<uint64_t>())
          .status());
  LOCKSTEP_ASSIGN_OR_RETURN(HeldBudget budget,
                            MakeBudget(plan, catalog, options.held_bytes_budget,
                                       std::max(counts.initial, counts.per_step)));
  LOCKSTEP_ASSIGN_OR_RETURN(const VariableInitializer first, VariableInitializer::Open(plan));

  // The others are told when the step shard has come to the end.
  const std::optional<GlobalStep> end = shard.value() == kStepShard ? EndOf(plan) : std::nullopt;
  const CountRule count_rule = CountRuleOf(plan, end);
  StepMachine step(catalog.size(), plan.start_step, count_rule);
  auto state = std::make_unique<EpochState>(std::move(catalog), std::move(budget), std::move(step));
  state->plan = Fingerprint(plan);
  state->refuse_non_finite = plan.refuse_non_finite;
  state->may_borrow = count_rule.kind == CountRule::kOncePerReplica;
  if (plan.asynchronous) {
    state->asynchronous.emplace(
        AsynchronousState{.learning_rate = ToSchedule(plan.optimizer.learning_rate()), .end = end});
  }
  state->closes_early = plan.every_replica_counts && state->may_borrow &&
                        plan.replicas_to_aggregate == plan.total_num_replicas &&
                        !plan.refuse_non_finite;
  state->num_shards = plan.placement.shards();
  state->replicas_to_aggregate = plan.replicas_to_aggregate;
  state->global_step = plan.start_step;
  state->rule = std::move(plain_rule);
  state->averaged_rule = std::move(averaged_rule);
  for (const ScalarSpec& spec : state->rule->scalars()) {
    LOCKSTEP_ASSIGN_OR_RETURN(const float value, first.Scalar(spec));
    state->scalars.push_back(value);
  }
  state->shared_values = MakeValueMemory(plan, *state, options);
  uint64_t used = 0;  // of the shared values' memory
  for (size_t i = 0; i < state->catalog.size(); ++i) {
    const CatalogEntry& entry = state->catalog[i];
    if (entry.is_frozen) state->step.Freeze(i);
    const RuleOfVariable rule = RuleOf(plan, *state, entry);
    LOCKSTEP_ASSIGN_OR_RETURN(
        auto hosted,
        MakeHostedVariable(entry, first, rule, plan,
                           SharedBuffersFor(entry, *rule.rule, state->shared_values, &used),
                           &state->missing_slots));
    const size_t num_ranges = DenseUpdate::NumRanges(entry.num_bytes);
    if (state->closes_early && entry.trainable && !entry.is_frozen && !entry.is_sparse &&
        num_ranges > 1) {
      hosted->early.arrived.resize(num_ranges);
    }
    state->variables.push_back(std::move(hosted));
  }
  if (shard.value() == kStepShard) {
    state->tokens = std::make_unique<TokenQueue>(
        is_fifo ? MakeFifoTokens(plan.start_step, counts.initial, counts.per_step)
                : MakePerReplicaTokens(plan.start_step));
  }
  return state;
}

std::string Fingerprint(const VariablePlan& plan) {
  OptimizerDef optimizer = plan.optimizer;
  if (!plan.asynchronous) optimizer.clear_learning_rate();  // comes with each grant
  optimizer.clear_clipping();                               // is the workers'
  return absl::StrCat(plan.placement.SerializeAsString(), "|", optimizer.SerializeAsString(), "|",
                      plan.seed, "|", plan.token_policy, "|", plan.total_num_replicas, "|",
                      plan.replicas_to_aggregate, "|", plan.refuse_non_finite, "|",
                      plan.asynchronous, "|", plan.max_staleness.value_or(-1), "|",
                      plan.end_step.value(), "|", plan.every_replica_counts);
}

}  // namespace lockstep::ps
