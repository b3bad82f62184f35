#include "ps/shard/hosted_state.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/checked.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint.h"
#include "common/model/initial_value.h"
#include "common/optimizer_proto/learning_rate.h"
#include "ps/shard/tensor_names.h"
#include "ps/shard/update_rule_of.h"

namespace lockstep::ps {
namespace {

// What checkpoints and the job's file call it.
const std::string& WholeName(const CatalogEntry& entry) {
  return entry.part.of().empty() ? entry.name : entry.part.of();
}

// Where first values come from.
class Source {
 public:
  static absl::StatusOr<Source> Open(const VariablePlan& plan) {
    Source source(plan.seed);
    if (!plan.restore_from.empty()) {
      LOCKSTEP_ASSIGN_OR_RETURN(source.checkpoint_, CheckpointReader::Open(plan.restore_from));
    }
    return source;
  }

  absl::StatusOr<Tensor> Value(const CatalogEntry& entry) const {
    Tensor value(entry.dtype, entry.shape);
    if (checkpoint_.has_value()) {
      LOCKSTEP_RETURN_IF_ERROR(ReadRows(entry, WholeName(entry), value.view()));
    } else if (entry.part.of().empty()) {
      FillInitialValue(entry.initializer, seed_, entry.name, value.view());
    } else {
      FillInitialRows(entry.initializer, seed_, entry.part.of(), entry.whole,
                      entry.part.first_row(), value.view());
    }
    return value;
  }

  // `value`: the variable's. `missing`: gets the name of what the checkpoint lacks.
  absl::StatusOr<Tensor> Slot(const CatalogEntry& entry, const SlotSpec& spec, const Tensor& value,
                              std::vector<std::string>* missing) const {
    const std::string name = SlotTensorName(WholeName(entry), spec.name);
    // A job may begin to average on its way, and a variable may have been frozen until now.
    const bool is_saved = checkpoint_.has_value() && checkpoint_->Has(name);
    if (checkpoint_.has_value() && !is_saved) {
      missing->push_back(SlotTensorName(entry.name, spec.name));
    }
    if (spec.starts_as_variable && !is_saved) return value.Clone();
    Tensor slot(entry.dtype, entry.shape);
    if (is_saved) {
      LOCKSTEP_RETURN_IF_ERROR(ReadRows(entry, name, slot.view()));
    } else if (entry.dtype == DType::kFloat32) {
      std::ranges::fill(slot.as<float>(), spec.initial_value);
    } else {
      std::ranges::fill(slot.as<double>(), spec.initial_value);
    }
    return slot;
  }

  absl::StatusOr<float> Scalar(const ScalarSpec& spec) const {
    float value = spec.initial_value;
    if (checkpoint_.has_value()) {
      LOCKSTEP_RETURN_IF_ERROR(checkpoint_->ReadInto(
          ScalarTensorName(spec.name), MutableTensorView{DType::kFloat32, Shape(), &value}));
    }
    return value;
  }

 private:
  explicit Source(uint64_t seed) : seed_(seed) {}

  // The checkpoint may be of other parts than this shard's, or of none.
  absl::Status ReadRows(const CatalogEntry& entry, const std::string& whole,
                        MutableTensorView value) const {
    if (entry.part.of().empty()) return checkpoint_->ReadInto(whole, value);
    return checkpoint_->ReadRows(whole, entry.whole, entry.part.first_row(), value);
  }

  uint64_t seed_;
  std::optional<CheckpointReader> checkpoint_;
};

std::variant<DenseAccumulator, SparseAccumulator> MakeAccumulator(const CatalogEntry& entry) {
  using Accumulator = std::variant<DenseAccumulator, SparseAccumulator>;
  if (entry.is_sparse) {
    // Without a shape: indices and slices have been checked when they came.
    return Accumulator(std::in_place_type<SparseAccumulator>, entry.dtype, PartialShape(),
                       Reduction::kMean);
  }
  return Accumulator(std::in_place_type<DenseAccumulator>, entry.dtype, PartialShape(entry.shape),
                     Reduction::kMean);
}

absl::StatusOr<std::unique_ptr<HostedVariable>> MakeVariable(
    const CatalogEntry& entry, const Source& source, const UpdateRule& rule, bool is_averaged,
    GlobalStep version, std::vector<ValuePlace> places, std::vector<std::string>* missing) {
  LOCKSTEP_ASSIGN_OR_RETURN(Tensor value, source.Value(entry));
  std::vector<Tensor> slots;
  if (entry.trainable && !entry.is_frozen) {
    for (const SlotSpec& spec : rule.slots()) {
      LOCKSTEP_ASSIGN_OR_RETURN(Tensor slot, source.Slot(entry, spec, value, missing));
      slots.push_back(std::move(slot));
    }
  }
  auto hosted = std::unique_ptr<HostedVariable>(
      new HostedVariable{Variable(entry.name, entry.trainable, std::move(value), version,
                                  std::move(slots), std::move(places)),
                         MakeAccumulator(entry), &rule, is_averaged});
  std::visit([version](auto& accumulator) { accumulator.SetGlobalStep(version); },
             hosted->accumulator);
  return hosted;
}

// Of the values of a variable that workers of this host look at. Tables are read row by row.
size_t NumPlaces(const CatalogEntry& entry) {
  if (entry.is_sparse) return 0;
  return entry.is_frozen ? 1 : BufferRecycler::kMaxPlaces;
}

ValueMemory MakeValueMemory(const VariablePlan& plan, const Catalog& catalog,
                            const ShardOptions& options) {
  if (!plan.shared_memory || options.make_value_memory == nullptr) return {};
  uint64_t bytes = 0;
  for (size_t i = 0; i < catalog.size(); ++i) {
    bytes += NumPlaces(catalog[i]) * PlaceBytes(catalog[i].num_bytes);
  }
  if (bytes == 0) return {};
  return options.make_value_memory(bytes).value_or(ValueMemory());
}

// From `*used` on, which moves behind them.
std::vector<ValuePlace> PlacesFor(const CatalogEntry& entry, const ValueMemory& memory,
                                  uint64_t* used) {
  std::vector<ValuePlace> places;
  if (memory.bytes.empty()) return places;
  for (size_t i = 0; i < NumPlaces(entry); ++i) {
    places.push_back({memory.bytes.data() + *used, memory.owner});
    *used += PlaceBytes(entry.num_bytes);
  }
  return places;
}

// All gradients that can be in hand at once: one per replica, and with a queue as many more as it
// hands out `tokens` for one step.
absl::StatusOr<uint64_t> WholeBudget(const VariablePlan& plan, uint64_t bytes, int64_t tokens) {
  const std::optional<int64_t> copies = CheckedAdd(plan.total_num_replicas, tokens);
  const std::optional<int64_t> budget =
      copies ? CheckedMultiply(*copies, static_cast<int64_t>(bytes)) : std::nullopt;
  if (!budget) return absl::InvalidArgumentError("the held gradients' bytes exceed 64 bits");
  return static_cast<uint64_t>(*budget);
}

absl::StatusOr<HeldBudget> MakeBudget(const VariablePlan& plan, const Catalog& catalog,
                                      uint64_t budget, int64_t tokens) {
  std::vector<HeldBudget::Kind> kinds;
  const CatalogEntry* largest = nullptr;  // dense
  uint64_t whole = 0;
  for (size_t i = 0; i < catalog.size(); ++i) {
    const CatalogEntry& entry = catalog[i];
    if (entry.is_frozen) {
      kinds.push_back({});
      continue;
    }
    kinds.push_back({entry.shape, entry.num_bytes, entry.is_sparse});
    whole += entry.MostGradientBytes();
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

CountRule CountRuleOf(const VariablePlan& plan) {
  if (plan.asynchronous) return CountRule::kOneByOne;
  return plan.token_policy == FIFO ? CountRule::kEveryGradient : CountRule::kOncePerReplica;
}

std::optional<GlobalStep> EndOf(const VariablePlan& plan) {
  return plan.end_step == GlobalStep() ? std::nullopt : std::optional(plan.end_step);
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

absl::StatusOr<std::unique_ptr<HostedState>> CreateHostedState(const VariablePlan& plan,
                                                               ShardIndex shard,
                                                               const ShardOptions& options) {
  if (plan.replicas_to_aggregate == 0 || plan.total_num_replicas == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected replicas, got replicas_to_aggregate ", plan.replicas_to_aggregate,
                     " of total_num_replicas ", plan.total_num_replicas));
  }
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
  LOCKSTEP_ASSIGN_OR_RETURN(HeldBudget budget,
                            MakeBudget(plan, catalog, options.held_bytes_budget,
                                       std::max(counts.initial, counts.per_step)));
  LOCKSTEP_ASSIGN_OR_RETURN(const Source source, Source::Open(plan));

  // The others are told when the step shard has come to the end.
  const std::optional<GlobalStep> end = shard.value() == kStepShard ? EndOf(plan) : std::nullopt;
  StepMachine step(catalog.size(), plan.start_step, CountRuleOf(plan), plan.max_staleness, end);
  auto state =
      std::make_unique<HostedState>(std::move(catalog), std::move(budget), std::move(step));
  state->plan = Fingerprint(plan);
  state->refuse_non_finite = plan.refuse_non_finite;
  state->holds_in_place = CountRuleOf(plan) == CountRule::kOncePerReplica;
  state->shared_values = MakeValueMemory(plan, state->catalog, options);
  if (plan.asynchronous) {
    state->asynchronous.emplace(
        AsynchronousState{.learning_rate = ToSchedule(plan.optimizer.learning_rate()), .end = end});
  }
  state->num_shards = plan.placement.shards();
  state->replicas_to_aggregate = plan.replicas_to_aggregate;
  state->global_step = plan.start_step;
  LOCKSTEP_ASSIGN_OR_RETURN(state->rule, UpdateRuleOf(plan.optimizer));
  LOCKSTEP_ASSIGN_OR_RETURN(state->averaged_rule, AveragedRuleOf(plan.optimizer));
  for (const ScalarSpec& spec : state->rule->scalars()) {
    LOCKSTEP_ASSIGN_OR_RETURN(const float value, source.Scalar(spec));
    state->scalars.push_back(value);
  }
  uint64_t used = 0;  // of the shared values' memory
  for (size_t i = 0; i < state->catalog.size(); ++i) {
    const CatalogEntry& entry = state->catalog[i];
    if (entry.is_frozen) state->step.Freeze(i);
    const bool is_averaged =
        entry.trainable && !entry.is_frozen && IsAveraged(plan.optimizer, WholeName(entry));
    const UpdateRule& rule = is_averaged ? *state->averaged_rule : *state->rule;
    LOCKSTEP_ASSIGN_OR_RETURN(
        auto hosted,
        MakeVariable(entry, source, rule, is_averaged, plan.start_step,
                     PlacesFor(entry, state->shared_values, &used), &state->missing_slots));
    state->variables.push_back(std::move(hosted));
  }
  if (shard.value() == kStepShard) {
    state->tokens = std::make_unique<TokenDesk>(
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
                      plan.end_step.value());
}

}  // namespace lockstep::ps
