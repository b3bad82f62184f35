#include "ps/accumulator/dense_accumulator.h"

#include <utility>

#include "common/base/check.h"
#include "common/tensor/element_math.h"
#include "common/tensor/half_width.h"

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
  const bool is_narrower = dtype_ == DType::kFloat32 && IsHalfWidth(gradient.dtype);
  if (gradient.dtype != dtype_ && !is_narrower) {
    return absl::InvalidArgumentError(
        absl::StrCat("Dtype mismatch: expected ", Name(dtype_), ", got ", Name(gradient.dtype)));
  }
  if (num_accumulated() > 0 && !(gradient.shape == gradients_.front().shape)) {
    return ShapeMismatch(gradients_.front().shape.ToString(), gradient.shape);
  }
  if (!shape_.IsCompatibleWith(gradient.shape)) {
    return ShapeMismatch(shape_.ToString(), gradient.shape);
  }
  return absl::OkStatus();
}

void DenseAccumulator::Start(const TensorView& gradient) { gradients_.assign(1, gradient); }

void DenseAccumulator::Add(const TensorView& gradient) { gradients_.push_back(gradient); }

DenseGradients DenseAccumulator::Finish(int count) {
  return {std::exchange(gradients_, {}), reduction() == Reduction::kMean ? count : 1};
}

}  // namespace lockstep::ps
