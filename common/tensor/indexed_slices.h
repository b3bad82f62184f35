// A gradient that touches some rows of a variable: which ones, and a slice of values for each. A
// row is all elements of one index of the first dimension.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/tensor/tensor.h"

namespace lockstep {

// Does not own.
struct IndexedSlicesView {
  absl::Span<const int64_t> indices;
  TensorView values;  // [indices.size(), ...]
};

struct IndexedSlices {
  std::vector<int64_t> indices;
  Tensor values;

  IndexedSlicesView view() const { return {indices, values.view()}; }
};

// The shape with another first dimension. It has one (CHECK).
Shape WithRows(const Shape& shape, int64_t rows);
// Elements of one slice.
size_t SliceWidth(const TensorView& values);

// Whether every row comes once, in ascending order.
bool IsSortedAndMerged(absl::Span<const int64_t> indices);
// The same gradient with its rows in ascending order, each once: the slices of a row that comes
// several times are summed in their order, rounded to the dtype at each sum. A dtype with element
// math (CHECK).
IndexedSlices SortAndMerge(const IndexedSlicesView& slices);
// As SortAndMerge, but a row that comes several times keeps its slices, one after the other.
IndexedSlices SortStably(const IndexedSlicesView& slices);

}  // namespace lockstep
