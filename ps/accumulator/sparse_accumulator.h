// The conditional accumulator of sparse gradients: sums row by row, in the order of arrival and in
// the gradients' own dtype. A mean divides each row by the number of gradients that touched it, not
// by the number of gradients: that is TensorFlow's, and what a rare row wants.
//
// A gradient costs in proportion to the rows it touches and, for their indices alone, to those that
// are there already.
#pragma once

#include <vector>

#include "common/tensor/indexed_slices.h"
#include "ps/accumulator/conditional_accumulator.h"
#include "ps/accumulator/partial_shape.h"
#include "ps/accumulator/sparse_gradient.h"

namespace lockstep::ps {

enum class RowMerge {
  // TensorFlow's, to the letter: the accumulated list and the new one are merged by comparing their
  // heads, as if both were ascending and without duplicates, which nobody checks. A row may then
  // come out several times, with a share of its gradients each.
  kAsPushed,
  // Each gradient is sorted and its duplicates are summed first, so that every row comes out once,
  // in ascending order. The same as above for gradients that are like that already.
  kSorted,
};

// Not thread-safe.
class SparseAccumulator final : public ConditionalAccumulator<SparseGradientView, SparseGradient> {
 public:
  // `shape` is that of the dense gradient; rank 0 or unknown leaves indices and slices unchecked. A
  // dtype with element math (CHECK).
  SparseAccumulator(DType dtype, PartialShape shape, Reduction reduction,
                    RowMerge merge = RowMerge::kAsPushed);

 private:
  // One row of the sum.
  struct Row {
    int64_t index;
    int count;          // gradients in it
    std::byte* values;  // in blocks_
  };

  absl::Status Validate(const SparseGradientView& gradient) const override;
  void Start(const SparseGradientView& gradient) override;
  void Add(const SparseGradientView& gradient) override;
  SparseGradient Finish(int count) override;

  void StartWith(const IndexedSlicesView& slices);
  void AddSlices(const IndexedSlicesView& slices);

  const DType dtype_;
  const PartialShape shape_;
  const RowMerge merge_;
  // Meaningful while num_accumulated() > 0.
  Shape values_shape_;  // of the first gradient
  std::vector<Row> rows_;
  std::vector<Tensor> blocks_;
};

}  // namespace lockstep::ps
