#include "tests/oracle/trained_variable.h"

#include <algorithm>
#include <utility>

#include "common/tensor/indexed_slices.h"

namespace lockstep::oracle {

Tensor InitialSlot(const SlotSpec& spec, const Tensor& variable) {
  if (spec.starts_as_variable) return variable.Clone();
  Tensor slot(variable.dtype(), variable.shape());
  if (slot.dtype() == DType::kFloat32) {
    std::ranges::fill(slot.as<float>(), spec.initial_value);
  } else {
    std::ranges::fill(slot.as<double>(), spec.initial_value);
  }
  return slot;
}

TrainedVariable::TrainedVariable(std::unique_ptr<const UpdateRule> rule,
                                 const MovingAverageOptions& averages, Tensor initial)
    : rule_(MakeAveraged(std::move(rule), averages)),
      value_(std::move(initial)),
      next_(value_.dtype(), value_.shape()),
      scalars_(InitialScalars(*rule_)) {
  for (const SlotSpec& spec : rule_->slots()) slots_.push_back(InitialSlot(spec, value_));
  for (Tensor& slot : slots_) slot_views_.push_back(slot.view());
}

void TrainedVariable::Apply(const reference::DenseGradients& gradients, float learning_rate,
                            GlobalStep step) {
  const std::vector<TensorView> views = gradients.views();
  rule_->Apply({.old_value = value_.view(),
                .gradients = views,
                .divisor = gradients.divisor,
                .new_value = next_.view(),
                .slots = slot_views_,
                .learning_rate = learning_rate,
                .scalars = scalars_,
                .version = step.next().value()});
  std::swap(value_, next_);
  rule_->AdvanceScalars(absl::MakeSpan(scalars_));
}

void TrainedVariable::Apply(const reference::SparseGradient& gradient, float learning_rate,
                            GlobalStep step) {
  const IndexedSlicesView taken{gradient.indices, gradient.values.view()};
  const IndexedSlices rows = rule_->TakesRepeatedRows() ? SortStably(taken) : SortAndMerge(taken);
  rule_->ApplyRows({.value = value_.view(),
                    .rows = rows.indices,
                    .gradient = rows.values.view(),
                    .slots = slot_views_,
                    .learning_rate = learning_rate,
                    .scalars = scalars_,
                    .version = step.next().value()});
  rule_->AdvanceScalars(absl::MakeSpan(scalars_));
}

}  // namespace lockstep::oracle
