// The sum of sparse gradients, row by row, in their order and in their own dtype, as TensorFlow's
// sparse accumulator makes it: the rows summed so far and the new ones are merged by comparing
// their heads, as if both were ascending and without duplicates, which nobody checks. A row may
// then come out several times, with a share of its gradients each.
//
// A gradient costs in proportion to the rows it touches and, for their indices alone, to those that
// are there already.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/tensor/indexed_slices.h"

namespace lockstep {

// Not thread-safe.
class SparseSum {
 public:
  // Begins with this gradient, whose dtype has element math (CHECK).
  explicit SparseSum(const IndexedSlicesView& first);
  // Of the same dtype and width.
  void Add(const IndexedSlicesView& gradient);

  struct Result {
    IndexedSlices sum;
    std::vector<int> counts;  // gradients in each row
  };
  Result Finish() const;

 private:
  struct Row {
    int64_t index;
    int count;
    std::byte* values;  // in blocks_
  };

  const Shape values_shape_;  // of the first gradient
  std::vector<Row> rows_;
  std::vector<Tensor> blocks_;
};

// The mean of at least one gradient (CHECK): each row is divided by the number of gradients that
// touched it, not by the number of gradients. That is TensorFlow's, and what a rare row wants.
IndexedSlices SparseMean(absl::Span<const IndexedSlicesView> gradients);

}  // namespace lockstep
