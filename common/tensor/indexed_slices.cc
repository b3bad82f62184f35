#include "common/tensor/indexed_slices.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>

#include "common/base/check.h"
#include "common/tensor/element_math.h"

namespace lockstep {
namespace {

std::vector<size_t> AscendingOrder(absl::Span<const int64_t> indices) {
  std::vector<size_t> order(indices.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [indices](size_t a, size_t b) { return indices[a] < indices[b]; });
  return order;
}

Tensor MakeRows(const TensorView& like, size_t rows) {
  return Tensor(like.dtype, WithRows(like.shape, static_cast<int64_t>(rows)));
}

}  // namespace

Shape WithRows(const Shape& shape, int64_t rows) {
  LOCKSTEP_CHECK(shape.rank() > 0);
  std::vector<int64_t> dims(shape.dims().begin(), shape.dims().end());
  dims[0] = rows;
  return Shape(dims);
}

size_t SliceWidth(const TensorView& values) {
  size_t width = 1;
  for (int axis = 1; axis < values.shape.rank(); ++axis) width *= values.shape.dim(axis);
  return width;
}

bool IsSortedAndMerged(absl::Span<const int64_t> indices) {
  return std::adjacent_find(indices.begin(), indices.end(), std::greater_equal<int64_t>()) ==
         indices.end();
}

IndexedSlices SortAndMerge(const IndexedSlicesView& slices) {
  const size_t width = SliceWidth(slices.values);
  const size_t row_bytes = width * SizeOf(slices.values.dtype);
  const auto* from = static_cast<const std::byte*>(slices.values.data);
  const std::vector<size_t> order = AscendingOrder(slices.indices);

  IndexedSlices merged;
  for (const size_t i : order) {
    if (merged.indices.empty() || merged.indices.back() != slices.indices[i]) {
      merged.indices.push_back(slices.indices[i]);
    }
  }
  merged.values = MakeRows(slices.values, merged.indices.size());
  auto* const to = static_cast<std::byte*>(merged.values.data());
  std::vector<RowSum> sums;
  size_t row = 0;
  for (size_t k = 0; k < order.size(); ++k) {
    const bool repeats = k > 0 && slices.indices[order[k]] == slices.indices[order[k - 1]];
    if (repeats) {
      sums.push_back({to + (row - 1) * row_bytes, from + order[k] * row_bytes});
    } else {
      if (row_bytes > 0) std::memcpy(to + row * row_bytes, from + order[k] * row_bytes, row_bytes);
      ++row;
    }
  }
  AddRows(slices.values.dtype, width, sums);
  return merged;
}

IndexedSlices SortStably(const IndexedSlicesView& slices) {
  const size_t row_bytes = SliceWidth(slices.values) * SizeOf(slices.values.dtype);
  const auto* from = static_cast<const std::byte*>(slices.values.data);
  IndexedSlices sorted{{}, MakeRows(slices.values, slices.indices.size())};
  sorted.indices.reserve(slices.indices.size());
  auto* to = static_cast<std::byte*>(sorted.values.data());
  for (const size_t i : AscendingOrder(slices.indices)) {
    sorted.indices.push_back(slices.indices[i]);
    if (row_bytes > 0) std::memcpy(to, from + i * row_bytes, row_bytes);
    to += row_bytes;
  }
  return sorted;
}

}  // namespace lockstep
