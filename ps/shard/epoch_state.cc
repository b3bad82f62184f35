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

bool KeepsAverage(const EpochConfig& config, const CatalogEntry& entry) {
  return entry.trainable && !entry.is_frozen && IsAveraged(config.optimizer(), WholeName(entry));
}

RuleOfVariable RuleOf(const EpochConfig& config, const EpochState& state,
                      const CatalogEntry& entry) {
  const bool is_averaged = KeepsAverage(config, entry);
  return {is_averaged ? state.averaged_rule.get() : state.rule.get(), is_averaged};
}

LentMemory MakeValueMemory(const EpochConfig& config, const EpochState& state,
                           const ShardOptions& options) {
  if (!config.shares_values() || options.make_value_memory == nullptr) return {};
  uint64_t bytes = 0;
  for (size_t i = 0; i < state.catalog.size(); ++i) {
    const CatalogEntry& entry = state.catalog[i];
    bytes += NumSharedBuffers(entry, *RuleOf(config, state, entry).rule) *
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
absl::StatusOr<uint64_t> WholeBudget(const EpochConfig& config, uint64_t bytes, int64_t tokens) {
  const uint64_t copies = uint64_t{config.total_num_replicas()} + static_cast<uint64_t>(tokens);
  const std::optional<uint64_t> budget = CheckedMultiplyBytes(copies, bytes);
  if (budget.has_value()) return *budget;
  return absl::InvalidArgumentError(absl::StrCat(
      "gradients of ", config.total_num_replicas(), " replicas (total_num_replicas) and ", tokens,
      " tokens, ", bytes, " bytes each, have more bytes than can be counted"));
}

absl::StatusOr<HeldBudget> MakeBudget(const EpochConfig& config, const Catalog& catalog,
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
    LOCKSTEP_ASSIGN_OR_RETURN(budget, WholeBudget(config, whole, tokens));
  } else if (largest != nullptr && budget / config.replicas_to_aggregate() < largest->num_bytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the budget for held gradients is ", budget, " bytes: expected at least ",
        config.replicas_to_aggregate(), " gradients (replicas_to_aggregate) of variable \"",
        largest->name, "\" with ", largest->num_bytes, " bytes each"));
  }
  return HeldBudget(std::move(kinds), budget, config.replicas_to_aggregate());
}

}  // namespace

absl::StatusOr<std::unique_ptr<EpochState>> CreateEpochState(
    std::shared_ptr<const EpochConfig> shared_config, ShardIndex shard,
    const ShardOptions& options) {
  const EpochConfig& config = *shared_config;
  LOCKSTEP_RETURN_IF_ERROR(config.Check());
  FifoCounts counts;
  if (config.is_fifo()) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        counts, CountFifoTokens(config.total_num_replicas(), config.replicas_to_aggregate(),
                                config.sync().init_tokens()));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(Catalog catalog, Catalog::Create(config.placement(), shard));
  LOCKSTEP_ASSIGN_OR_RETURN(auto plain_rule, UpdateRuleOf(config.optimizer()));
  LOCKSTEP_ASSIGN_OR_RETURN(auto averaged_rule, AveragedRuleOf(config.optimizer()));
  const auto rule_of = [&](const CatalogEntry& entry) -> const UpdateRule& {
    return KeepsAverage(config, entry) ? *averaged_rule : *plain_rule;
  };
  const bool knows_memory = options.available_memory != nullptr;
  LOCKSTEP_RETURN_IF_ERROR(
      CheckMemoryNeed(catalog, rule_of,
                      knows_memory ? options.available_memory() : std::optional<uint64_t>())
          .status());
  LOCKSTEP_ASSIGN_OR_RETURN(HeldBudget budget,
                            MakeBudget(config, catalog, options.held_bytes_budget,
                                       std::max(counts.initial, counts.per_step)));
  LOCKSTEP_ASSIGN_OR_RETURN(const VariableInitializer first, VariableInitializer::Open(config));

  // The others are told when the step shard has come to the end.
  const std::optional<GlobalStep> end =
      shard.value() == kStepShard ? config.end_step() : std::nullopt;
  StepMachine step(catalog.size(), config.start_step(), config.count_rule(end));
  auto state = std::make_unique<EpochState>(std::move(shared_config), std::move(catalog),
                                            std::move(budget), std::move(step));
  if (config.is_asynchronous()) {
    state->asynchronous.emplace(AsynchronousState{
        .learning_rate = ToSchedule(config.optimizer().learning_rate()), .end = end});
  }
  state->global_step = config.start_step();
  state->rule = std::move(plain_rule);
  state->averaged_rule = std::move(averaged_rule);
  for (const ScalarSpec& spec : state->rule->scalars()) {
    LOCKSTEP_ASSIGN_OR_RETURN(const float value, first.Scalar(spec));
    state->scalars.push_back(value);
  }
  state->shared_values = MakeValueMemory(config, *state, options);
  uint64_t used = 0;  // of the shared values' memory
  for (size_t i = 0; i < state->catalog.size(); ++i) {
    const CatalogEntry& entry = state->catalog[i];
    if (entry.is_frozen) state->step.Freeze(i);
    const RuleOfVariable rule = RuleOf(config, *state, entry);
    LOCKSTEP_ASSIGN_OR_RETURN(
        auto hosted,
        MakeHostedVariable(entry, first, rule, config,
                           SharedBuffersFor(entry, *rule.rule, state->shared_values, &used),
                           &state->missing_slots));
    const size_t num_ranges = DenseUpdate::NumRanges(entry.num_bytes);
    if (config.applies_early_chunks() && entry.trainable && !entry.is_frozen && !entry.is_sparse &&
        num_ranges > 1) {
      hosted->early.arrived.resize(num_ranges);
    }
    state->variables.push_back(std::move(hosted));
  }
  if (shard.value() == kStepShard) {
    state->tokens = std::make_unique<TokenQueue>(
        config.is_fifo() ? MakeFifoTokens(config.start_step(), counts.initial, counts.per_step)
                         : MakePerReplicaTokens(config.start_step()));
  }
  return state;
}

}  // namespace lockstep::ps
