#include "ps/step/close_variable.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/tensor/indexed_slices.h"
#include "common/tensor/packed_rows.h"

namespace lockstep::ps {
namespace {

TensorView GradientOf(const HeldGradient& held, const Variable&, const DenseAccumulator*) {
  return held.value.view();
}

SparseGradientView GradientOf(const HeldGradient& held, const Variable& variable,
                              const SparseAccumulator*) {
  const IndexedSlicesView slices =
      ViewPacked(held.value.view().bytes(), variable.dtype(), variable.shape());
  const Shape count({static_cast<int64_t>(slices.indices.size())});
  return {TensorView{DType::kInt64, count, slices.indices.data()}, slices.values, {}};
}

// What the accumulator makes of the gradients.
template <typename Accumulator>
auto Mean(const Closing& closing, const Variable& variable, Accumulator* accumulator) {
  LOCKSTEP_CHECK(accumulator->global_step() == closing.step);
  for (const HeldGradient& held : closing.gradients) {
    // The step machine has judged; asynchronous gradients count whatever their stamp.
    const auto applied = accumulator->Apply(std::max(held.local_step, closing.step),
                                            GradientOf(held, variable, accumulator));
    LOCKSTEP_CHECK(applied.ok() && applied->accepted);
  }
  auto taken = accumulator->Take(TakeId(), static_cast<int>(closing.required));
  LOCKSTEP_CHECK(taken.ok() && taken->size() == 1);
  return *std::move(taken->front().gradient);
}

// In the order in which ApplyRows takes rows.
IndexedSlices RowsFor(const UpdateRule& rule, SparseGradient mean) {
  IndexedSlices slices{std::move(mean.indices), std::move(mean.values)};
  if (IsSortedAndMerged(slices.indices)) return slices;
  return rule.TakesRepeatedRows() ? SortStably(slices.view()) : SortAndMerge(slices.view());
}

}  // namespace

NextValue ComputeNextValue(const Closing& closing, const UpdateRule& rule,
                           absl::Span<const float> scalars, Variable* variable,
                           DenseAccumulator* accumulator) {
  Tensor mean = Mean(closing, *variable, accumulator);
  std::unique_ptr<ValueBuffer> next = variable->TakeBuffer();
  if (variable->trainable()) {
    rule.Apply({variable->newest()->view(), mean.view(), next->tensor.view(), variable->slots(),
                closing.learning_rate, scalars, closing.step.next().value()});
  } else {
    Copy(mean.view(), next->tensor.view());
  }
  accumulator->Recycle(std::move(mean));
  return {variable->Share(std::move(next)), std::nullopt};
}

NextValue ComputeNextValue(const Closing& closing, const UpdateRule& rule,
                           absl::Span<const float> scalars, Variable* variable,
                           SparseAccumulator* accumulator) {
  IndexedSlices slices = RowsFor(rule, Mean(closing, *variable, accumulator));
  std::unique_ptr<ValueBuffer> next = variable->TakeCopy();
  rule.ApplyRows({next->tensor.view(), slices.indices, slices.values.view(), variable->slots(),
                  closing.learning_rate, scalars, closing.step.next().value()});
  NextValue made{variable->Share(std::move(next)), std::nullopt};
  if (rule.TouchesOnlyRows()) made.changed_rows = std::move(slices.indices);
  return made;
}

}  // namespace lockstep::ps
