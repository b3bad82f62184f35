#include "ps/accumulator/sparse_accumulator.h"

#include <cstring>
#include <functional>

#include "absl/functional/function_ref.h"
#include "common/base/check.h"
#include "common/tensor/element_math.h"
#include "ps/accumulator/sparse_validation.h"

namespace lockstep::ps {
namespace {

// Calls `use` with the gradient's slices, the way they are to be accumulated.
void WithSlices(const SparseGradientView& gradient, RowMerge merge,
                absl::FunctionRef<void(const IndexedSlicesView&)> use) {
  std::vector<int64_t> widened;
  IndexedSlicesView slices{{}, gradient.values};
  if (gradient.indices.dtype == DType::kInt32) {
    const auto narrow = gradient.indices.as<int32_t>();
    widened.assign(narrow.begin(), narrow.end());
    slices.indices = widened;
  } else {
    const auto indices = gradient.indices.as<int64_t>();
    slices.indices = {indices.data(), indices.size()};
  }
  if (merge == RowMerge::kAsPushed || IsSortedAndMerged(slices.indices)) {
    use(slices);
  } else {
    use(SortAndMerge(slices).view());
  }
}

}  // namespace

SparseAccumulator::SparseAccumulator(DType dtype, PartialShape shape, Reduction reduction,
                                     RowMerge merge)
    : ConditionalAccumulator(reduction), dtype_(dtype), shape_(std::move(shape)), merge_(merge) {
  LOCKSTEP_CHECK(HasElementMath(dtype));
}

absl::Status SparseAccumulator::Validate(const SparseGradientView& gradient) const {
  return ValidateSparse(gradient, shape_, dtype_, num_accumulated() > 0 ? &values_shape_ : nullptr);
}

void SparseAccumulator::Start(const SparseGradientView& gradient) {
  WithSlices(gradient, merge_, [this](const IndexedSlicesView& slices) { StartWith(slices); });
}

void SparseAccumulator::Add(const SparseGradientView& gradient) {
  WithSlices(gradient, merge_, [this](const IndexedSlicesView& slices) { AddSlices(slices); });
}

void SparseAccumulator::StartWith(const IndexedSlicesView& slices) {
  values_shape_ = slices.values.shape;
  Tensor& block = blocks_.emplace_back(dtype_, slices.values.shape);
  Copy(slices.values, block.view());
  const size_t row_bytes = SliceWidth(slices.values) * SizeOf(dtype_);
  auto* values = static_cast<std::byte*>(block.data());
  rows_.reserve(slices.indices.size());
  for (const int64_t index : slices.indices) {
    rows_.push_back({index, 1, values});
    values += row_bytes;
  }
}

void SparseAccumulator::AddSlices(const IndexedSlicesView& slices) {
  const size_t width = SliceWidth(slices.values);
  const size_t row_bytes = width * SizeOf(dtype_);
  const auto* term = static_cast<const std::byte*>(slices.values.data);

  std::vector<Row> merged;
  merged.reserve(rows_.size() + slices.indices.size());
  std::vector<RowSum> sums;                               // into rows that are there
  std::vector<std::pair<size_t, const std::byte*>> news;  // places in `merged`, and their values
  auto stored = rows_.begin();
  for (const int64_t index : slices.indices) {
    while (stored != rows_.end() && stored->index < index) merged.push_back(*stored++);
    if (stored != rows_.end() && stored->index == index) {
      sums.push_back({stored->values, term});
      merged.push_back({index, stored->count + 1, stored->values});
      ++stored;
    } else {
      news.emplace_back(merged.size(), term);
      merged.push_back({index, 1, nullptr});
    }
    term += row_bytes;
  }
  merged.insert(merged.end(), stored, rows_.end());
  rows_ = std::move(merged);

  AddRows(dtype_, width, sums);
  if (news.empty()) return;
  Tensor& block = blocks_.emplace_back(dtype_, WithRows(values_shape_, news.size()));
  auto* values = static_cast<std::byte*>(block.data());
  for (const auto& [row, from] : news) {
    if (row_bytes > 0) std::memcpy(values, from, row_bytes);
    rows_[row].values = values;
    values += row_bytes;
  }
}

SparseGradient SparseAccumulator::Finish(int /*count*/) {
  SparseGradient taken;
  taken.dense_shape.assign(values_shape_.dims().begin(), values_shape_.dims().end());
  taken.dense_shape[0] = shape_.rank() > 0 ? shape_.dim(0) : PartialShape::kUnknown;
  taken.values = Tensor(dtype_, WithRows(values_shape_, rows_.size()));
  taken.indices.reserve(rows_.size());
  const size_t width = SliceWidth(taken.values.view());
  const size_t row_bytes = width * SizeOf(dtype_);
  auto* to = static_cast<std::byte*>(taken.values.data());
  std::vector<int> counts;
  counts.reserve(rows_.size());
  for (const Row& row : rows_) {
    if (row_bytes > 0) std::memcpy(to, row.values, row_bytes);
    to += row_bytes;
    taken.indices.push_back(row.index);
    counts.push_back(row.count);
  }
  if (reduction() == Reduction::kMean) {
    DivideRows(dtype_, width, taken.values.data(), counts);
  }
  rows_.clear();
  blocks_.clear();
  return taken;
}

}  // namespace lockstep::ps
