#include "ps/accumulator/dense_accumulator.h"

#include "common/base/check.h"
#include "common/tensor/element_math.h"

namespace lockstep::ps {
namespace {

absl::Status ShapeMismatch(const std::string& expected, const Shape& got) {
  return absl::InvalidArgumentError(
      absl::StrCat("Shape mismatch: expected ", expected, ", got ", got.ToString()));
}

}  // namespace

DenseAccumulator::DenseAccumulator(DType dtype, PartialShape shape, Reduction reduction)
    : ConditionalAccumulator(reduction), dtype_(dtype), shape_(std::move(shape)) {
  LOCKSTEP_CHECK(HasElementMath(dtype));
}

absl::Status DenseAccumulator::Validate(const TensorView& gradient) const {
  if (gradient.dtype != dtype_) {
    return absl::InvalidArgumentError(
        absl::StrCat("Dtype mismatch: expected ", Name(dtype_), ", got ", Name(gradient.dtype)));
  }
  if (num_accumulated() > 0 && !(gradient.shape == sum_.shape())) {
    return ShapeMismatch(sum_.shape().ToString(), gradient.shape);
  }
  if (!shape_.IsCompatibleWith(gradient.shape)) {
    return ShapeMismatch(shape_.ToString(), gradient.shape);
  }
  return absl::OkStatus();
}

void DenseAccumulator::Start(const TensorView& gradient) {
  if (spare_.data() != nullptr && spare_.dtype() == dtype_ && spare_.shape() == gradient.shape) {
    sum_ = std::move(spare_);
    spare_ = Tensor();
  } else {
    sum_ = Tensor(dtype_, gradient.shape);
  }
  Copy(gradient, sum_.view());
}

void DenseAccumulator::Add(const TensorView& gradient) { AddTo(sum_.view(), gradient); }

Tensor DenseAccumulator::Finish(int count) {
  if (reduction() == Reduction::kMean) DivideBy(sum_.view(), count);
  return std::exchange(sum_, Tensor());
}

}  // namespace lockstep::ps
