// The conditional accumulator of dense gradients: sums in the order of arrival, in the gradients'
// own dtype.
#pragma once

#include "common/tensor/tensor.h"
#include "ps/accumulator/conditional_accumulator.h"
#include "ps/accumulator/partial_shape.h"

namespace lockstep::ps {

// Not thread-safe.
class DenseAccumulator final : public ConditionalAccumulator<TensorView, Tensor> {
 public:
  // A dtype with element arithmetic (CHECK): float32, float64, float16, bfloat16.
  DenseAccumulator(DType dtype, PartialShape shape, Reduction reduction);

  // Memory for the next sum, when it fits: what was taken can come back, so that nothing is
  // allocated step by step.
  void Recycle(Tensor buffer) { spare_ = std::move(buffer); }

 private:
  absl::Status Validate(const TensorView& gradient) const override;
  void Start(const TensorView& gradient) override;
  void Add(const TensorView& gradient) override;
  Tensor Finish(int count) override;

  const DType dtype_;
  const PartialShape shape_;
  Tensor sum_;  // meaningful while num_accumulated() > 0
  Tensor spare_;
};

}  // namespace lockstep::ps
