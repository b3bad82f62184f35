#include "common/update/sparse_update.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/tensor/gather_rows.h"
#include "common/tensor/packed_rows.h"
#include "common/update/dense_update.h"
#include "common/update/sparse_sum.h"

namespace lockstep {
namespace {

// Means of so many rows stay in the first cache, while the next ones are on their way from memory.
constexpr size_t kMostRowsAtATime = 16;
constexpr size_t kBlockBytes = size_t{16} << 10;

}  // namespace

NextValue SparseUpdate::Make(absl::Span<const IndexedSlicesView> gradients, RunRanges run) {
  if (variable_->table() == nullptr) {
    const IndexedSlices slices = RowsOf(SparseMean(gradients));
    std::shared_ptr<ValueBuffer> next = variable_->TakeCopy();
    variable_->BeforeWriteSlots({0, variable_->num_bytes()});
    rule_.ApplyRows(UpdateOf(next->tensor.view(), slices.indices, slices.values.view()));
    return variable_->Finish(std::move(next), nullptr);
  }
  LOCKSTEP_CHECK(rule_.TouchesOnlyRows());
  if (const std::optional<RowMeans> means = RowMeans::Of(gradients)) {
    ChangeTable(*means, run);
  } else {
    ChangeTable(RowsOf(SparseMean(gradients)));
  }
  return {variable_->table()->value(), nullptr};
}

IndexedSlices SparseUpdate::RowsOf(IndexedSlices mean) const {
  if (IsSortedAndMerged(mean.indices)) return mean;
  return rule_.TakesRepeatedRows() ? SortStably(mean.view()) : SortAndMerge(mean.view());
}

RowUpdate SparseUpdate::UpdateOf(const MutableTensorView& value, absl::Span<const int64_t> rows,
                                 const TensorView& gradient) const {
  return {
      value, rows, gradient, variable_->slots(), learning_rate_, scalars_, step_.next().value()};
}

void SparseUpdate::ChangeTable(const RowMeans& means, RunRanges run) {
  const size_t row_bytes = std::max<size_t>(1, RowBytes(variable_->dtype(), variable_->shape()));
  const size_t at_a_time = std::clamp<size_t>(kBlockBytes / row_bytes, 1, kMostRowsAtATime);
  const absl::Span<const int64_t> rows = means.rows();
  const GlobalStep version = variable_->newest_version().next();
  variable_->table()->MakeNext(version, rows, [&](const Table::Change& change) {
    const auto prefetch = [&](absl::Span<const int64_t> next) {
      PrefetchRows(static_cast<std::byte*>(change.value().data), row_bytes, next);
      for (const MutableTensorView& slot : variable_->slots()) {
        PrefetchRows(static_cast<std::byte*>(slot.data), row_bytes, next);
      }
    };
    run(rows.size(), std::max<size_t>(1, DenseUpdate::kRangeBytes / row_bytes),
        [&](size_t begin, size_t end) {
          Tensor block(variable_->dtype(),
                       WithRows(variable_->shape(), static_cast<int64_t>(at_a_time)));
          for (size_t first = begin; first < end; first += at_a_time) {
            const size_t last = std::min(first + at_a_time, end);
            prefetch(rows.subspan(last, std::min(at_a_time, end - last)));
            change.Keep(first, last);
            variable_->BeforeWriteRows(rows.subspan(first, last - first));
            means.Take(first, last, block.data());
            rule_.ApplyRows(UpdateOf(change.value(), rows.subspan(first, last - first),
                                     RowRange(std::as_const(block).view(), 0, last - first)));
          }
        });
  });
}

void SparseUpdate::ChangeTable(const IndexedSlices& mean) {
  std::vector<int64_t> rows;
  std::ranges::unique_copy(mean.indices, std::back_inserter(rows));
  const GlobalStep version = variable_->newest_version().next();
  variable_->table()->MakeNext(version, rows, [&](const Table::Change& change) {
    change.Keep(0, rows.size());
    variable_->BeforeWriteRows(rows);
    rule_.ApplyRows(UpdateOf(change.value(), mean.indices, mean.values.view()));
  });
}

}  // namespace lockstep
