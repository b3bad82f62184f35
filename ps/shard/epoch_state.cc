#include "ps/shard/epoch_state.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/checked.h"
#include "common/base/limits.h"
#include "common/base/status_macros.h"
#include "ps/shard/memory_need.h"
#include "ps/shard/state_pieces.h"
#include "ps/shard/tensor_names.h"
#include "ps/shard/variable_initializer.h"

namespace lockstep::ps {
namespace {

RuleOfVariable RuleOf(const EpochVariables& variables, const CatalogEntry& entry) {
  const size_t optimizer = entry.loss == 0 ? 0 : entry.loss - 1;
  const OptimizerRules& rules = variables.optimizers[optimizer];
  if (!entry.trainable || entry.is_frozen) return {&rules.plain(), false, optimizer};
  const std::string& name = WholeName(entry);
  return {&rules.of(name), rules.is_averaged(name), optimizer};
}

absl::StatusOr<std::vector<OptimizerRules>> RulesOf(const EpochConfig& config) {
  std::vector<OptimizerRules> optimizers;
  for (size_t i = 0; i < config.num_optimizers(); ++i) {
    LOCKSTEP_ASSIGN_OR_RETURN(OptimizerRules rules, OptimizerRules::Create(config.optimizer(i)));
    optimizers.push_back(std::move(rules));
  }
  return optimizers;
}

absl::StatusOr<std::vector<std::vector<float>>> FirstScalars(const EpochVariables& variables,
                                                             const VariableInitializer& first) {
  std::vector<std::vector<float>> scalars(variables.optimizers.size());
  for (size_t i = 0; i < scalars.size(); ++i) {
    for (const ScalarSpec& spec : variables.optimizers[i].plain().scalars()) {
      LOCKSTEP_ASSIGN_OR_RETURN(
          const float value,
          first.Scalar(ScalarTensorName(variables.config.OptimizerName(i), spec.name), spec));
      scalars[i].push_back(value);
    }
  }
  return scalars;
}

LentMemory MakeValueMemory(const EpochVariables& variables, const ShardOptions& options) {
  if (!variables.config.shares_values() || options.make_value_memory == nullptr) return {};
  uint64_t bytes = 0;
  for (size_t i = 0; i < variables.catalog.size(); ++i) {
    const CatalogEntry& entry = variables.catalog[i];
    bytes += NumSharedBuffers(entry, *RuleOf(variables, entry).rule) *
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

bool ClosesEarly(const EpochVariables& variables, const CatalogEntry& entry) {
  return variables.config.applies_early_chunks() && entry.trainable && entry.TakesGradients() &&
         !entry.is_sparse && DenseUpdate::NumRanges(entry.num_bytes) > 1;
}

// On all threads, a variable at a time: reading a checkpoint, drawing initial values and touching
// new memory keep a core busy. The error is that of the first variable that has one.
absl::Status MakeEntries(const VariableInitializer& first, ThreadPool* pool,
                         EpochVariables* variables, std::vector<std::string>* missing_slots) {
  const size_t num_variables = variables->catalog.size();
  std::vector<std::vector<SharedBuffer>> shared;
  uint64_t used = 0;  // of the shared values' memory
  for (size_t i = 0; i < num_variables; ++i) {
    const CatalogEntry& entry = variables->catalog[i];
    shared.push_back(
        SharedBuffersFor(entry, *RuleOf(*variables, entry).rule, variables->shared_values, &used));
  }
  std::vector<absl::StatusOr<std::unique_ptr<VariableEntry>>> made(num_variables);
  std::vector<std::vector<std::string>> missing(num_variables);
  std::atomic<size_t> failed = num_variables;  // the first one; none after it need be made
  pool->ForRanges(num_variables, 1, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end && i < failed; ++i) {
      const CatalogEntry& entry = variables->catalog[i];
      made[i] = MakeVariableEntry(entry, first, RuleOf(*variables, entry), variables->config,
                                  std::move(shared[i]), &missing[i]);
      size_t before = failed;
      while (!made[i].ok() && i < before && !failed.compare_exchange_weak(before, i)) continue;
    }
  });
  for (size_t i = 0; i < num_variables; ++i) {
    LOCKSTEP_RETURN_IF_ERROR(made[i].status());
    variables->entries.push_back(*std::move(made[i]));
    std::ranges::move(missing[i], std::back_inserter(*missing_slots));
    const CatalogEntry& entry = variables->catalog[i];
    if (!ClosesEarly(*variables, entry)) continue;
    variables->entries.back()->num_chunks = DenseUpdate::NumRanges(entry.num_bytes);
  }
  return absl::OkStatus();
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
  const uint32_t copies = config.gradients_of_step();
  const CatalogEntry* largest = nullptr;  // dense
  uint64_t whole = 0;
  for (size_t i = 0; i < catalog.size(); ++i) {
    const CatalogEntry& entry = catalog[i];
    if (!entry.TakesGradients()) {
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
  uint64_t replica_bytes = 0;
  if (budget == 0) {
    LOCKSTEP_ASSIGN_OR_RETURN(budget, WholeBudget(config, whole, tokens));
    replica_bytes = whole;
  } else if (largest != nullptr && budget / copies < largest->num_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the budget for held gradients is ", budget, " bytes: expected at least ",
                     copies, " gradients (replicas_to_aggregate) of variable \"", largest->name,
                     "\" with ", largest->num_bytes, " bytes each"));
  }
  return HeldBudget(std::move(kinds), budget, copies, replica_bytes);
}

}  // namespace

EpochState::EpochState(const Host& host, EpochVariables of, HeldBudget budget, StepMachine steps,
                       std::unique_ptr<TokenServer> token_server, std::optional<GlobalStep> end)
    : host(host),
      mu(*host.mu),
      variables(std::move(of)),
      step(std::move(steps)),
      receiver(&variables, &step, std::move(budget), host.options->clock, host.counts),
      reader(&variables, &receiver, &snapshots, &to_store, host.readers),
      tokens(std::move(token_server)),
      driver(StepDriver::Create(
          {&variables, &step, tokens.get(), &snapshots, &to_store, host.counts}, end)),
      incoming(variables.config.awaits_state()
                   ? std::make_unique<StateReceiver>(StateTensorsOf(variables))
                   : nullptr) {}

void EpochState::GiveBack(WorkerIndex worker, DeferredCallbacks* deferred) {
  if (!variables.config.is_replicated()) return;
  for (size_t i = 0; i < variables.catalog.size(); ++i) {
    std::optional<HeldGradient> held = step.Remove(i, worker);
    if (!held.has_value()) continue;
    // The same incarnation may become a member again.
    receiver.Forget(worker, i);
    receiver.Release(i, std::move(held->gradient), deferred);
  }
}

absl::StatusOr<std::unique_ptr<EpochState>> CreateEpochState(const CreateVariablesRequest& request,
                                                             ShardIndex shard, bool is_copy,
                                                             const EpochState::Host& host) {
  EpochConfig config(request);
  const ShardOptions& options = *host.options;
  LOCKSTEP_RETURN_IF_ERROR(config.Check());
  FifoCounts counts;
  if (config.is_fifo()) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        counts, CountFifoTokens(config.total_num_replicas(), config.replicas_to_aggregate(),
                                config.sync().init_tokens()));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(Catalog catalog, Catalog::Create(config.placement(), shard));
  LOCKSTEP_ASSIGN_OR_RETURN(std::vector<OptimizerRules> optimizers, RulesOf(config));
  EpochVariables variables{std::move(config), std::move(catalog), std::move(optimizers)};
  const auto rule_of = [&](const CatalogEntry& entry) -> const UpdateRule& {
    return *RuleOf(variables, entry).rule;
  };
  LOCKSTEP_ASSIGN_OR_RETURN(ClaimedMemory claimed,
                            ClaimMemory(variables, rule_of, options, is_copy));
  LOCKSTEP_ASSIGN_OR_RETURN(
      HeldBudget budget, MakeBudget(variables.config, variables.catalog, options.held_bytes_budget,
                                    std::max(counts.initial, counts.per_step)));
  if (options.memory != nullptr) {
    // Which workers share memory is not known before they call: gradients of the others come into
    // what is left.
    budget.SetLimit(GradientLimit(options.memory, claimed), variables.config.total_num_replicas());
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const VariableInitializer first,
                            VariableInitializer::Open(variables.config));

  const bool is_step_shard = shard.value() == kStepShard;
  // The others are told when the step shard has come to the end.
  const std::optional<GlobalStep> end = is_step_shard ? variables.config.end_step() : std::nullopt;
  const GlobalStep start = variables.config.start_step();
  StepMachine step(variables.catalog.gradient_turns(), start, variables.config.count_rule(end));
  LOCKSTEP_ASSIGN_OR_RETURN(auto scalars, FirstScalars(variables, first));
  variables.start_scalars = scalars;
  variables.shared_values = MakeValueMemory(variables, options);
  std::vector<std::string> missing_slots;
  LOCKSTEP_RETURN_IF_ERROR(MakeEntries(first, host.pool, &variables, &missing_slots));
  std::unique_ptr<TokenServer> tokens;
  if (is_step_shard) {
    tokens = std::make_unique<TokenServer>(
        variables.config.is_fifo() ? MakeFifoTokens(start, counts.initial, counts.per_step)
                                   : MakePerReplicaTokens(start),
        start);
  }
  auto state = std::make_unique<EpochState>(host, std::move(variables), std::move(budget),
                                            std::move(step), std::move(tokens), end);
  state->scalars = std::move(scalars);
  state->missing_slots = std::move(missing_slots);
  state->memory = std::move(claimed.claim);
  return state;
}

}  // namespace lockstep::ps
