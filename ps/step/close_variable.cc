#include "ps/step/close_variable.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/tensor/element_math.h"
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

// A range takes at least as long as it takes to wake a thread.
constexpr size_t kRangeBytes = size_t{256} << 10;
static_assert(kRangeBytes / sizeof(double) % kRangeStep == 0);
// Beyond this, a value has left the caches before anybody reads it.
constexpr size_t kCachedBytes = size_t{16} << 20;

// What the accumulator makes of the gradients.
template <typename Accumulator>
auto Taken(const Closing& closing, const Variable& variable, Accumulator* accumulator) {
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
                           absl::Span<const float> scalars, RunRanges run, Variable* variable,
                           DenseAccumulator* accumulator) {
  const DenseGradients taken = Taken(closing, *variable, accumulator);
  std::unique_ptr<ValueBuffer> next = variable->TakeBuffer();
  std::unique_ptr<ValueBuffer> narrow = variable->TakeNarrowBuffer();
  const Update update{
      .old_value = variable->newest()->view(),
      .gradients = taken.gradients,
      .divisor = taken.divisor,
      .new_value = next->tensor.view(),
      .slots = variable->slots(),
      .learning_rate = closing.learning_rate,
      .scalars = scalars,
      .version = closing.step.next().value(),
      .bypasses_caches = variable->num_bytes() > kCachedBytes,
      .narrow_value = narrow == nullptr ? MutableTensorView() : narrow->tensor.view()};
  const size_t element_bytes = SizeOf(variable->dtype());
  const size_t count = variable->num_bytes() / element_bytes;
  run(count, kRangeBytes / element_bytes, [&](size_t begin, size_t end) {
    const ElementRange range{begin, end - begin};
    if (variable->trainable()) {
      Update of_range = update;
      of_range.range = range;
      rule.Apply(of_range);
    } else {
      std::byte* const mean = static_cast<std::byte*>(next->tensor.data()) + begin * element_bytes;
      TakeMean(update, range, mean);
      WriteNarrow(update, range, mean);
    }
  });
  return {variable->Share(std::move(next)), std::nullopt, variable->ShareNarrow(std::move(narrow))};
}

NextValue ComputeNextValue(const Closing& closing, const UpdateRule& rule,
                           absl::Span<const float> scalars, RunRanges /*run*/, Variable* variable,
                           SparseAccumulator* accumulator) {
  IndexedSlices slices = RowsFor(rule, Taken(closing, *variable, accumulator));
  std::unique_ptr<ValueBuffer> next = variable->TakeCopy();
  rule.ApplyRows({next->tensor.view(), slices.indices, slices.values.view(), variable->slots(),
                  closing.learning_rate, scalars, closing.step.next().value()});
  NextValue made{variable->Share(std::move(next)), std::nullopt, nullptr};
  if (rule.TouchesOnlyRows()) made.changed_rows = std::move(slices.indices);
  return made;
}

}  // namespace lockstep::ps
