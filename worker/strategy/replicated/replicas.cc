#include "worker/strategy/replicated/replicas.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/annotate.h"
#include "common/base/check.h"
#include "common/tensor/gather_rows.h"
#include "common/tensor/packed_rows.h"
#include "common/update/dense_update.h"
#include "common/update/sparse_update.h"
#include "common/update/update_batch.h"

namespace lockstep::worker {
namespace {

std::vector<IndexedSlices> Clone(const std::vector<IndexedSlices>& slices) {
  std::vector<IndexedSlices> clones;
  for (const IndexedSlices& one : slices) clones.push_back({one.indices, one.values.Clone()});
  return clones;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Replicas>> Replicas::Create(const ReplicasOptions& options,
                                                           const VariableLayout& layout,
                                                           OptimizerRules rules, ReplicaState state,
                                                           TensorMaker make_tensor) {
  const size_t expected = rules.plain().scalars().size();
  if (state.scalars.size() != expected && !rules.plain().slots().empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the optimizer has ", expected, " numbers of its own, the ps told ", state.scalars.size()));
  }
  state.scalars.resize(expected);
  return std::unique_ptr<Replicas>(
      new Replicas(options, layout, std::move(rules), std::move(state), std::move(make_tensor)));
}

Replicas::Replicas(const ReplicasOptions& options, const VariableLayout& layout,
                   OptimizerRules rules, ReplicaState state, TensorMaker make_tensor)
    : options_(options),
      layout_(layout),
      make_tensor_(std::move(make_tensor)),
      rules_(std::move(rules)),
      pool_(options.threads),
      version_(state.version),
      scalars_(std::move(state.scalars)),
      numbers_(layout.variables().size(), -1) {
  for (const WholeVariable& variable : layout.variables()) {
    rule_of_.push_back(variable.trainable ? &rules_.of(variable.name) : &rules_.plain());
  }
  for (const bool tables : {false, true}) {
    for (size_t i = 0; i < layout.variables().size(); ++i) {
      if (!IsTrained(i) || IsTrainedTable(i) != tables) continue;
      numbers_[i] = static_cast<int>(reduced_.size());
      reduced_.push_back(static_cast<int>(i));
    }
    if (!tables) num_dense_ = static_cast<int>(reduced_.size());
  }
  for (int tower = 1; tower < options.towers; ++tower) towers_.push_back(MakeTower(CopyOf(state)));
  towers_.push_back(MakeTower(std::move(state)));
  for (Tower& tower : towers_) {
    memory_.push_back({.values = {tower.values}, .gradients = tower.gradients});
    std::vector<TensorView>& gradients = trained_gradients_.emplace_back();
    for (const int variable : reduced_) {
      gradients.push_back(std::as_const(tower.gradient_memory[variable]).view());
    }
  }
}

bool Replicas::Changes(size_t variable) const {
  return !layout_.variables()[variable].frozen && variable + 1 < layout_.variables().size();
}

bool Replicas::IsTrained(size_t variable) const {
  return layout_.variables()[variable].trainable && Changes(variable);
}

bool Replicas::IsTrainedTable(size_t variable) const {
  return layout_.variables()[variable].sparse && Changes(variable);
}

RowShare Replicas::ShareOf(size_t variable) const {
  return RowShare(layout_.variables()[variable], options_.most_rows[variable]);
}

Replicas::Tower Replicas::MakeTower(ReplicaState state) const {
  Tower tower;
  for (size_t i = 0; i < layout_.variables().size(); ++i) {
    const WholeVariable& of = layout_.variables()[i];
    tower.variables.push_back(MakeVariable(i, &state));
    tower.values.push_back(tower.variables.back()->newest()->view());
    tower.rows.push_back(
        MakeTensor(of.dtype, of.sparse ? WithRows(of.shape, options_.most_rows[i]) : Shape({0})));
    Shape gradient = of.frozen ? Shape({0}) : of.shape;
    if (IsTrainedTable(i)) gradient = Shape({ShareOf(i).num_elements()});
    tower.gradient_memory.push_back(MakeTensor(of.dtype, gradient));
    tower.gradients.push_back({of.dtype, of.shape, tower.gradient_memory.back().data()});
  }
  return tower;
}

ReplicaState Replicas::CopyOf(const ReplicaState& state) const {
  ReplicaState copy = UninitializedState(layout_, rules_, make_tensor_);
  copy.version = state.version;
  copy.scalars = state.scalars;
  const auto copy_to = [](const Tensor& from, Tensor& to) { Copy(from.view(), to.view()); };
  for (size_t i = 0; i < state.values.size(); ++i) {
    copy_to(state.values[i], copy.values[i]);
    for (size_t k = 0; k < state.slots[i].size(); ++k) copy_to(state.slots[i][k], copy.slots[i][k]);
  }
  return copy;
}

std::unique_ptr<Variable> Replicas::MakeVariable(size_t variable, ReplicaState* state) const {
  const WholeVariable& of = layout_.variables()[variable];
  std::vector<Tensor> slots = std::move(state->slots[variable]);
  Tensor value = std::move(state->values[variable]);
  if (IsTrainedTable(variable) && rule_of_[variable]->TouchesOnlyRows()) {
    auto table = std::make_shared<Table>(std::move(value), state->version, Table::kNewest, nullptr);
    return std::make_unique<Variable>(of.name, std::move(table), state->version, std::move(slots));
  }
  // Of tables towers get copies of rows.
  if (of.sparse) {
    return std::make_unique<Variable>(of.name, of.trainable, std::move(value), state->version,
                                      std::move(slots));
  }
  return std::make_unique<Variable>(of.name, of.trainable, std::move(value), state->version,
                                    std::move(slots), std::vector<SharedBuffer>(), make_tensor_);
}

Tensor Replicas::MakeTensor(DType dtype, const Shape& shape) const {
  return shape.num_elements() == 0 ? Tensor(dtype, shape) : make_tensor_(dtype, shape);
}

void Replicas::ReadRows(std::span<const std::span<const int64_t>> rows) {
  for (size_t i = 0; i < layout_.variables().size(); ++i) {
    const WholeVariable& of = layout_.variables()[i];
    if (!of.sparse) continue;
    LOCKSTEP_CHECK(static_cast<int64_t>(rows[i].size()) <= options_.most_rows[i]);
    for (size_t t = 0; t < towers_.size(); ++t) {
      Tower& tower = towers_[t];
      memory_[t].values.rows = rows;
      auto* const to = static_cast<std::byte*>(tower.rows[i].data());
      GatherRows(static_cast<const std::byte*>(tower.variables[i]->newest()->data()),
                 RowBytes(of.dtype, of.shape), rows[i], to);
      tower.values[i] = {of.dtype, WithRows(of.shape, static_cast<int64_t>(rows[i].size())), to};
      if (of.frozen) continue;
      auto* const share = static_cast<std::byte*>(tower.gradient_memory[i].data());
      tower.gradients[i] = ShareOf(i).Begin(rows[i], share);
    }
  }
}

std::vector<TensorView> Replicas::StateOfTower0() const {
  std::vector<TensorView> tensors;
  for (const std::unique_ptr<Variable>& variable : towers_[0].variables) {
    tensors.push_back(variable->newest()->view());
    for (const MutableTensorView& slot : variable->slots()) tensors.push_back(slot);
  }
  return tensors;
}

absl::Status Replicas::Check(const GroupReducer& reduced) const {
  for (size_t i = num_dense_; i < reduced_.size(); ++i) {
    const RowShare share = ShareOf(reduced_[i]);
    const TensorView gathered = reduced.tensor(0, static_cast<int>(i));
    const auto* const begin = static_cast<const std::byte*>(gathered.data);
    const int64_t shares = gathered.num_elements() / share.num_elements();
    for (int64_t rank = 0; rank < shares; ++rank) {
      const absl::Status status = share.Check(begin + rank * share.num_bytes());
      if (status.ok()) continue;
      return Annotate(status, absl::StrCat("gradient of \"", layout_.variables()[reduced_[i]].name,
                                           "\" of tower ", rank, " of the group"));
    }
  }
  return absl::OkStatus();
}

std::vector<IndexedSlices> Replicas::MergedRows(const GroupReducer& reduced) const {
  std::vector<IndexedSlices> rows;
  for (size_t i = num_dense_; i < reduced_.size(); ++i) {
    const MutableTensorView gathered = reduced.tensor(0, static_cast<int>(i));
    rows.push_back(MergeShares(ShareOf(reduced_[i]), gathered, options_.average));
  }
  return rows;
}

void Replicas::Apply(float learning_rate, const GroupReducer& reduced,
                     const ClippingRule& clipping) {
  const std::vector<IndexedSlices> merged = MergedRows(reduced);
  for (size_t t = 0; t < towers_.size(); ++t) {
    std::vector<IndexedSlices> rows = Clone(merged);
    std::vector<MutableTensorView> gradients;
    for (size_t i = 0; i < layout_.variables().size(); ++i) {
      if (!IsTrained(i)) continue;
      gradients.push_back(IsTrainedTable(i) ? rows[numbers_[i] - num_dense_].values.view()
                                            : reduced.tensor(static_cast<int>(t), numbers_[i]));
    }
    Clip(clipping, gradients);
    for (size_t i = 0; i < rows.size(); ++i) {
      ApplyRows(learning_rate, rows[i], reduced_[num_dense_ + i], &towers_[t]);
    }
  }
  ApplyDense(learning_rate, reduced);
  rules_.plain().AdvanceScalars(absl::MakeSpan(scalars_));
  version_ = version_.next();
}

void Replicas::ApplyRows(float learning_rate, const IndexedSlices& rows, size_t variable,
                         Tower* tower) {
  Variable& of = *tower->variables[variable];
  of.DropPrevious().reset();
  SparseUpdate update(version_, learning_rate, *rule_of_[variable], scalars_, &of);
  const IndexedSlicesView gradient = rows.view();
  of.Publish(update.Make({&gradient, 1}, [this](size_t count, size_t step,
                                                absl::FunctionRef<void(size_t, size_t)> work) {
    pool_.ForRanges(count, step, work);
  }));
}

void Replicas::ApplyDense(float learning_rate, const GroupReducer& reduced) {
  std::vector<DenseUpdate> updates;
  std::vector<std::pair<size_t, size_t>> of;  // tower and variable
  for (size_t t = 0; t < towers_.size(); ++t) {
    Tower& tower = towers_[t];
    for (size_t i = 0; i < tower.variables.size(); ++i) {
      if (!Changes(i) || IsTrainedTable(i)) continue;
      const WholeVariable& variable = layout_.variables()[i];
      const TensorView gradient = variable.trainable
                                      ? TensorView(reduced.tensor(static_cast<int>(t), numbers_[i]))
                                      : TensorView(tower.gradients[i]);
      // The version before makes room for the next one.
      tower.variables[i]->DropPrevious().reset();
      updates.emplace_back(version_, learning_rate, *rule_of_[i], scalars_,
                           tower.variables[i].get());
      updates.back().SetGradients({GradientSource{gradient, nullptr}}, 1);
      of.emplace_back(t, i);
    }
  }
  UpdateBatch together(std::move(updates));
  pool_.ForRanges(together.num_parts(), 1, [&](size_t begin, size_t end) {
    UpdateBatch::Group whole;
    for (size_t part = begin; part < end; ++part) together.Make(part, &whole);
  });
  for (size_t i = 0; i < of.size(); ++i) {
    Tower& tower = towers_[of[i].first];
    Variable& variable = *tower.variables[of[i].second];
    variable.Publish(together.update(i).Finish());
    tower.values[of[i].second] = variable.newest()->view();
  }
}

}  // namespace lockstep::worker
