#include "common/update/sparse_sum.h"

#include <cstring>
#include <utility>

#include "common/base/check.h"
#include "common/tensor/element_math.h"

namespace lockstep {

SparseSum::SparseSum(const IndexedSlicesView& first) : values_shape_(first.values.shape) {
  LOCKSTEP_CHECK(HasElementMath(first.values.dtype));
  Tensor& block = blocks_.emplace_back(first.values.dtype, values_shape_);
  Copy(first.values, block.view());
  const size_t row_bytes = SliceWidth(first.values) * SizeOf(block.dtype());
  auto* values = static_cast<std::byte*>(block.data());
  rows_.reserve(first.indices.size());
  for (const int64_t index : first.indices) {
    rows_.push_back({index, 1, values});
    values += row_bytes;
  }
}

void SparseSum::Add(const IndexedSlicesView& gradient) {
  const DType dtype = gradient.values.dtype;
  const size_t width = SliceWidth(gradient.values);
  const size_t row_bytes = width * SizeOf(dtype);
  const auto* term = static_cast<const std::byte*>(gradient.values.data);

  std::vector<Row> merged;
  merged.reserve(rows_.size() + gradient.indices.size());
  std::vector<RowSum> sums;                               // into rows that are there
  std::vector<std::pair<size_t, const std::byte*>> news;  // places in `merged`, and their values
  auto stored = rows_.begin();
  for (const int64_t index : gradient.indices) {
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

  AddRows(dtype, width, sums);
  if (news.empty()) return;
  Tensor& block = blocks_.emplace_back(dtype, WithRows(values_shape_, news.size()));
  auto* values = static_cast<std::byte*>(block.data());
  for (const auto& [row, from] : news) {
    if (row_bytes > 0) std::memcpy(values, from, row_bytes);
    rows_[row].values = values;
    values += row_bytes;
  }
}

SparseSum::Result SparseSum::Finish() const {
  Result result;
  result.sum.values = Tensor(blocks_.front().dtype(), WithRows(values_shape_, rows_.size()));
  result.sum.indices.reserve(rows_.size());
  result.counts.reserve(rows_.size());
  const TensorView values = std::as_const(result.sum.values).view();
  const size_t row_bytes = SliceWidth(values) * SizeOf(values.dtype);
  auto* to = static_cast<std::byte*>(result.sum.values.data());
  for (const Row& row : rows_) {
    if (row_bytes > 0) std::memcpy(to, row.values, row_bytes);
    to += row_bytes;
    result.sum.indices.push_back(row.index);
    result.counts.push_back(row.count);
  }
  return result;
}

IndexedSlices SparseMean(absl::Span<const IndexedSlicesView> gradients) {
  LOCKSTEP_CHECK(!gradients.empty());
  SparseSum sum(gradients.front());
  for (const IndexedSlicesView& gradient : gradients.subspan(1)) sum.Add(gradient);
  SparseSum::Result result = sum.Finish();
  Tensor& values = result.sum.values;
  DivideRows(values.dtype(), SliceWidth(std::as_const(values).view()), values.data(),
             result.counts);
  return std::move(result.sum);
}

}  // namespace lockstep
