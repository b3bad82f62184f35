// The conditional accumulator of dense gradients: sums in the order of arrival, in the gradients'
// own dtype, of which a float32 one takes what is narrower, too. It holds the
// gradients and leaves the sum to its caller, so that one pass over memory can sum and apply them.
#pragma once

#include "absl/container/inlined_vector.h"
#include "common/tensor/tensor.h"
#include "ps/accumulator/conditional_accumulator.h"
#include "ps/accumulator/partial_shape.h"

namespace lockstep::ps {

// What is taken: the gradients in their order, and what their sum is to be divided by. It is summed
// and divided by common/tensor/element_math.h, or by an update rule that is given both
// (common/optimizer/update_rule.h).
struct DenseGradients {
  absl::InlinedVector<TensorView, 4> gradients;
  int divisor = 1;
};

// Does not own the gradients: they stay as long as what was taken with them is used. Not
// thread-safe.
class DenseAccumulator final : public ConditionalAccumulator<TensorView, DenseGradients> {
 public:
  // A dtype with element arithmetic (CHECK): float32, float64, float16, bfloat16.
  DenseAccumulator(DType dtype, PartialShape shape, Reduction reduction);

 private:
  absl::Status Validate(const TensorView& gradient) const override;
  void Start(const TensorView& gradient) override;
  void Add(const TensorView& gradient) override;
  DenseGradients Finish(int count) override;

  const DType dtype_;
  const PartialShape shape_;
  absl::InlinedVector<TensorView, 4> gradients_;
};

}  // namespace lockstep::ps
