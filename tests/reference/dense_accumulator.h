// TensorFlow's conditional accumulator of dense gradients: sums in the order of arrival, in the
// gradients' own dtype. A float32 accumulator takes narrower gradients, too.
#pragma once

#include <vector>

#include "common/tensor/tensor.h"
#include "tests/reference/partial_shape.h"
#include "tests/reference/waiting_accumulator.h"

namespace lockstep::reference {

// What is taken: the gradients in their order, and what their sum is to be divided by. The sum is
// made by common/tensor/element_math.h, or by an update rule that is given both.
struct DenseGradients {
  std::vector<Tensor> gradients;
  int divisor = 1;

  std::vector<TensorView> views() const;
  // Their sum, divided.
  Tensor Reduced() const;
};

class DenseAccumulator final : public WaitingAccumulator<TensorView, DenseGradients> {
 public:
  // A dtype with element arithmetic (CHECK): float32, float64, float16, bfloat16.
  DenseAccumulator(DType dtype, PartialShape shape, Reduction reduction);

 private:
  absl::Status Validate(const TensorView& gradient) const override;
  Gradient CopyOf(const TensorView& gradient) const override;
  DenseGradients Reduce(ps::TakenGradients taken) const override;

  const DType dtype_;
  const PartialShape shape_;
};

}  // namespace lockstep::reference
