#include "worker/strategy/replicated/replicas.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/update/dense_update.h"
#include "common/update/update_batch.h"

namespace lockstep::worker {

absl::StatusOr<std::unique_ptr<Replicas>> Replicas::Create(const ReplicasOptions& options,
                                                           const VariableLayout& layout,
                                                           OptimizerRules rules,
                                                           ReplicaState state) {
  const size_t expected = rules.plain().scalars().size();
  if (state.scalars.size() != expected && !rules.plain().slots().empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the optimizer has ", expected, " numbers of its own, the ps told ", state.scalars.size()));
  }
  state.scalars.resize(expected);
  return std::unique_ptr<Replicas>(
      new Replicas(options, layout, std::move(rules), std::move(state)));
}

Replicas::Replicas(const ReplicasOptions& options, const VariableLayout& layout,
                   OptimizerRules rules, ReplicaState state)
    : layout_(layout),
      rules_(std::move(rules)),
      pool_(options.threads),
      version_(state.version),
      scalars_(std::move(state.scalars)) {
  for (size_t i = 0; i < layout.variables().size(); ++i) {
    const WholeVariable& variable = layout.variables()[i];
    rule_of_.push_back(variable.trainable ? &rules_.of(variable.name) : &rules_.plain());
    if (variable.trainable && Changes(i)) reduced_.push_back(static_cast<int>(i));
  }
  for (int tower = 0; tower < options.towers; ++tower) towers_.push_back(MakeTower(state));
  for (Tower& tower : towers_) {
    memory_.push_back({.values = {tower.values}, .gradients = tower.gradients});
    std::vector<TensorView>& gradients = trained_gradients_.emplace_back();
    for (const int variable : reduced_) gradients.push_back(tower.gradients[variable]);
  }
}

bool Replicas::Changes(size_t variable) const {
  return !layout_.variables()[variable].frozen && variable + 1 < layout_.variables().size();
}

Replicas::Tower Replicas::MakeTower(const ReplicaState& state) const {
  Tower tower;
  for (size_t i = 0; i < layout_.variables().size(); ++i) {
    const WholeVariable& of = layout_.variables()[i];
    std::vector<Tensor> slots;
    for (const Tensor& slot : state.slots[i]) slots.push_back(slot.Clone());
    tower.variables.push_back(std::make_unique<Variable>(
        of.name, of.trainable, state.values[i].Clone(), state.version, std::move(slots)));
    tower.values.push_back(tower.variables.back()->newest()->view());
    tower.gradient_memory.emplace_back(of.dtype, of.frozen ? Shape({0}) : of.shape);
    tower.gradients.push_back({of.dtype, of.shape, tower.gradient_memory.back().data()});
  }
  return tower;
}

std::vector<TensorView> Replicas::StateOfTower0() const {
  std::vector<TensorView> tensors;
  for (const std::unique_ptr<Variable>& variable : towers_[0].variables) {
    tensors.push_back(variable->newest()->view());
    for (const MutableTensorView& slot : variable->slots()) tensors.push_back(slot);
  }
  return tensors;
}

void Replicas::Apply(float learning_rate, const GroupReducer& reduced) {
  std::vector<DenseUpdate> updates;
  std::vector<std::pair<size_t, size_t>> of;  // tower and variable
  for (size_t t = 0; t < towers_.size(); ++t) {
    Tower& tower = towers_[t];
    int number = 0;
    for (size_t i = 0; i < tower.variables.size(); ++i) {
      if (!Changes(i)) continue;
      const WholeVariable& variable = layout_.variables()[i];
      const TensorView gradient = variable.trainable
                                      ? TensorView(reduced.tensor(static_cast<int>(t), number++))
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
  rules_.plain().AdvanceScalars(absl::MakeSpan(scalars_));
  version_ = version_.next();
}

}  // namespace lockstep::worker
