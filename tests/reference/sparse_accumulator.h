// TensorFlow's conditional accumulator of sparse gradients: sums row by row, in the order of
// arrival and in the gradients' own dtype (common/update/sparse_sum.h).
#pragma once

#include "tests/reference/partial_shape.h"
#include "tests/reference/sparse_gradient.h"
#include "tests/reference/waiting_accumulator.h"

namespace lockstep::reference {

enum class RowMerge {
  // TensorFlow's, to the letter: rows are merged as if those of each gradient were ascending and
  // without duplicates, which nobody checks.
  kAsPushed,
  // Each gradient is sorted and its duplicates are summed first, so that every row comes out once,
  // in ascending order. The same as above for gradients that are like that already.
  kSorted,
};

class SparseAccumulator final : public WaitingAccumulator<SparseGradientView, SparseGradient> {
 public:
  // `shape` is that of the dense gradient; rank 0 or unknown leaves indices and slices unchecked. A
  // dtype with element math (CHECK).
  SparseAccumulator(DType dtype, PartialShape shape, Reduction reduction,
                    RowMerge merge = RowMerge::kAsPushed);

 private:
  absl::Status Validate(const SparseGradientView& gradient) const override;
  Gradient CopyOf(const SparseGradientView& gradient) const override;
  SparseGradient Reduce(ps::TakenGradients taken) const override;

  const DType dtype_;
  const PartialShape shape_;
  const RowMerge merge_;
};

}  // namespace lockstep::reference
