#include "ps/step/close_variable.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "common/base/check.h"
#include "common/tensor/element_math.h"
#include "common/tensor/gather_rows.h"
#include "common/tensor/indexed_slices.h"
#include "common/tensor/packed_rows.h"
#include "common/tensor/row_means.h"

namespace lockstep::ps {
namespace {

TensorView GradientOf(const HeldGradient& held, const Variable&, const DenseAccumulator*) {
  return held.value.view();
}

IndexedSlicesView SlicesOf(const HeldGradient& held, const Variable& variable) {
  if (held.indices.num_elements() > 0) {
    const auto indices = held.indices.as<int64_t>();
    return {{indices.data(), indices.size()}, held.value.view()};
  }
  return ViewPacked(held.value.view().bytes(), variable.dtype(), variable.shape());
}

SparseGradientView GradientOf(const HeldGradient& held, const Variable& variable,
                              const SparseAccumulator*) {
  const IndexedSlicesView slices = SlicesOf(held, variable);
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

RowUpdate UpdateOf(const Closing& closing, absl::Span<const float> scalars,
                   const Variable& variable, const MutableTensorView& value,
                   absl::Span<const int64_t> rows, const TensorView& gradient) {
  return {value,
          rows,
          gradient,
          variable.slots(),
          closing.learning_rate,
          scalars,
          closing.step.next().value()};
}

std::optional<RowMeans> MeansOf(const Closing& closing, const Variable& variable) {
  absl::InlinedVector<IndexedSlicesView, 4> gradients;
  for (const HeldGradient& held : closing.gradients) {
    gradients.push_back(SlicesOf(held, variable));
  }
  return RowMeans::Of(gradients);
}

// Means of so many rows stay in the first cache, while the next ones are on their way from memory.
constexpr size_t kMostRowsAtATime = 16;
constexpr size_t kBlockBytes = size_t{16} << 10;

void ChangeRows(const Closing& closing, const UpdateRule& rule, absl::Span<const float> scalars,
                RunRanges run, const RowMeans& means, Variable* variable) {
  const size_t row_bytes = std::max<size_t>(1, RowBytes(variable->dtype(), variable->shape()));
  const size_t at_a_time = std::clamp<size_t>(kBlockBytes / row_bytes, 1, kMostRowsAtATime);
  const absl::Span<const int64_t> rows = means.rows();
  variable->table()->MakeNext(rows, [&](const Table::Change& change) {
    const auto prefetch = [&](absl::Span<const int64_t> next) {
      PrefetchRows(static_cast<std::byte*>(change.value().data), row_bytes, next);
      for (const MutableTensorView& slot : variable->slots()) {
        PrefetchRows(static_cast<std::byte*>(slot.data), row_bytes, next);
      }
    };
    run(rows.size(), std::max<size_t>(1, kRangeBytes / row_bytes), [&](size_t begin, size_t end) {
      Tensor block(variable->dtype(), WithRows(variable->shape(), static_cast<int64_t>(at_a_time)));
      for (size_t first = begin; first < end; first += at_a_time) {
        const size_t last = std::min(first + at_a_time, end);
        prefetch(rows.subspan(last, std::min(at_a_time, end - last)));
        change.Keep(first, last);
        means.Take(first, last, block.data());
        rule.ApplyRows(UpdateOf(closing, scalars, *variable, change.value(),
                                rows.subspan(first, last - first),
                                RowRange(std::as_const(block).view(), 0, last - first)));
      }
    });
  });
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
  return {variable->Share(std::move(next)), variable->ShareNarrow(std::move(narrow))};
}

NextValue ComputeNextValue(const Closing& closing, const UpdateRule& rule,
                           absl::Span<const float> scalars, RunRanges run, Variable* variable,
                           SparseAccumulator* accumulator) {
  if (variable->table() == nullptr) {
    const IndexedSlices slices = RowsFor(rule, Taken(closing, *variable, accumulator));
    std::unique_ptr<ValueBuffer> next = variable->TakeCopy();
    rule.ApplyRows(UpdateOf(closing, scalars, *variable, next->tensor.view(), slices.indices,
                            slices.values.view()));
    return {variable->Share(std::move(next)), nullptr};
  }
  LOCKSTEP_CHECK(rule.TouchesOnlyRows());
  if (const std::optional<RowMeans> means = MeansOf(closing, *variable)) {
    // What the accumulator would make of them.
    LOCKSTEP_CHECK(accumulator->global_step() == closing.step);
    accumulator->SetGlobalStep(closing.step.next());
    ChangeRows(closing, rule, scalars, run, *means, variable);
  } else {
    const IndexedSlices slices = RowsFor(rule, Taken(closing, *variable, accumulator));
    std::vector<int64_t> rows;
    std::ranges::unique_copy(slices.indices, std::back_inserter(rows));
    variable->table()->MakeNext(rows, [&](const Table::Change& change) {
      change.Keep(0, rows.size());
      rule.ApplyRows(UpdateOf(closing, scalars, *variable, change.value(), slices.indices,
                              slices.values.view()));
    });
  }
  return {variable->table()->value(), nullptr};
}

}  // namespace lockstep::ps
