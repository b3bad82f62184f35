#include "ps/step/close_rows.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "common/base/check.h"
#include "common/tensor/gather_rows.h"
#include "common/tensor/indexed_slices.h"
#include "common/tensor/packed_rows.h"
#include "common/tensor/row_means.h"
#include "ps/step/dense_update.h"
#include "ps/step/take_gradients.h"

namespace lockstep::ps {
namespace {

IndexedSlicesView SlicesOf(const HeldGradient& held, const Variable& variable) {
  if (held.indices.num_elements() > 0) {
    const auto indices = held.indices.as<int64_t>();
    return {{indices.data(), indices.size()}, held.value.view()};
  }
  return ViewPacked(held.value.view().bytes(), variable.dtype(), variable.shape());
}

SparseGradientView GradientOf(const HeldGradient& held, const Variable& variable) {
  const IndexedSlicesView slices = SlicesOf(held, variable);
  const Shape count({static_cast<int64_t>(slices.indices.size())});
  return {TensorView{DType::kInt64, count, slices.indices.data()}, slices.values, {}};
}

SparseGradient MergeGradients(const TakenGradients& taken, const Variable& variable,
                              SparseAccumulator* accumulator) {
  return TakeGradients(
      taken, [&](const HeldGradient& held) { return GradientOf(held, variable); }, accumulator);
}

// In the order in which ApplyRows takes rows.
IndexedSlices RowsFor(const UpdateRule& rule, SparseGradient mean) {
  IndexedSlices slices{std::move(mean.indices), std::move(mean.values)};
  if (IsSortedAndMerged(slices.indices)) return slices;
  return rule.TakesRepeatedRows() ? SortStably(slices.view()) : SortAndMerge(slices.view());
}

RowUpdate UpdateOf(const TakenGradients& taken, absl::Span<const float> scalars,
                   const Variable& variable, const MutableTensorView& value,
                   absl::Span<const int64_t> rows, const TensorView& gradient) {
  return {value,
          rows,
          gradient,
          variable.slots(),
          taken.learning_rate,
          scalars,
          taken.step.next().value()};
}

std::optional<RowMeans> MeansOf(const TakenGradients& taken, const Variable& variable) {
  absl::InlinedVector<IndexedSlicesView, 4> gradients;
  for (const HeldGradient& held : taken.gradients) {
    gradients.push_back(SlicesOf(held, variable));
  }
  return RowMeans::Of(gradients);
}

// Means of so many rows stay in the first cache, while the next ones are on their way from memory.
constexpr size_t kMostRowsAtATime = 16;
constexpr size_t kBlockBytes = size_t{16} << 10;

void ChangeRows(const TakenGradients& taken, const UpdateRule& rule,
                absl::Span<const float> scalars, RunRanges run, const RowMeans& means,
                Variable* variable) {
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
    run(rows.size(), std::max<size_t>(1, DenseUpdate::kRangeBytes / row_bytes),
        [&](size_t begin, size_t end) {
          Tensor block(variable->dtype(),
                       WithRows(variable->shape(), static_cast<int64_t>(at_a_time)));
          for (size_t first = begin; first < end; first += at_a_time) {
            const size_t last = std::min(first + at_a_time, end);
            prefetch(rows.subspan(last, std::min(at_a_time, end - last)));
            change.Keep(first, last);
            means.Take(first, last, block.data());
            rule.ApplyRows(UpdateOf(taken, scalars, *variable, change.value(),
                                    rows.subspan(first, last - first),
                                    RowRange(std::as_const(block).view(), 0, last - first)));
          }
        });
  });
}

}  // namespace

NextValue ComputeNextValue(const TakenGradients& taken, const UpdateRule& rule,
                           absl::Span<const float> scalars, RunRanges run, Variable* variable,
                           SparseAccumulator* accumulator) {
  if (variable->table() == nullptr) {
    const IndexedSlices slices = RowsFor(rule, MergeGradients(taken, *variable, accumulator));
    std::shared_ptr<ValueBuffer> next = variable->TakeCopy();
    rule.ApplyRows(UpdateOf(taken, scalars, *variable, next->tensor.view(), slices.indices,
                            slices.values.view()));
    return variable->Finish(std::move(next), nullptr);
  }
  LOCKSTEP_CHECK(rule.TouchesOnlyRows());
  if (const std::optional<RowMeans> means = MeansOf(taken, *variable)) {
    // What the accumulator would make of them.
    LOCKSTEP_CHECK(accumulator->global_step() == taken.step);
    accumulator->SetGlobalStep(taken.step.next());
    ChangeRows(taken, rule, scalars, run, *means, variable);
  } else {
    const IndexedSlices slices = RowsFor(rule, MergeGradients(taken, *variable, accumulator));
    std::vector<int64_t> rows;
    std::ranges::unique_copy(slices.indices, std::back_inserter(rows));
    variable->table()->MakeNext(rows, [&](const Table::Change& change) {
      change.Keep(0, rows.size());
      rule.ApplyRows(UpdateOf(taken, scalars, *variable, change.value(), slices.indices,
                              slices.values.view()));
    });
  }
  return {variable->table()->value(), nullptr};
}

}  // namespace lockstep::ps
