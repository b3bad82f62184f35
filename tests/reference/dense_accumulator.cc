#include "tests/reference/dense_accumulator.h"

#include <utility>

#include "common/base/check.h"
#include "common/tensor/element_math.h"
#include "common/tensor/half_width.h"

namespace lockstep::reference {
namespace {

absl::Status ShapeMismatch(const std::string& expected, const Shape& got) {
  return absl::InvalidArgumentError(
      absl::StrCat("Shape mismatch: expected ", expected, ", got ", got.ToString()));
}

}  // namespace

std::vector<TensorView> DenseGradients::views() const {
  std::vector<TensorView> views;
  for (const Tensor& gradient : gradients) views.push_back(gradient.view());
  return views;
}

Tensor DenseGradients::Reduced() const {
  Tensor reduced(gradients.front().dtype(), gradients.front().shape());
  SumAndDivide(views(), divisor, {0, static_cast<size_t>(reduced.num_elements())}, reduced.data());
  return reduced;
}

DenseAccumulator::DenseAccumulator(DType dtype, PartialShape shape, Reduction reduction)
    : WaitingAccumulator(reduction), dtype_(dtype), shape_(std::move(shape)) {
  LOCKSTEP_CHECK(HasElementMath(dtype));
}

absl::Status DenseAccumulator::Validate(const TensorView& gradient) const {
  const bool is_narrower = dtype_ == DType::kFloat32 && IsHalfWidth(gradient.dtype);
  if (gradient.dtype != dtype_ && !is_narrower) {
    return absl::InvalidArgumentError(
        absl::StrCat("Dtype mismatch: expected ", Name(dtype_), ", got ", Name(gradient.dtype)));
  }
  if (num_accumulated() > 0 && !(gradient.shape == first().value.shape())) {
    return ShapeMismatch(first().value.shape().ToString(), gradient.shape);
  }
  if (!shape_.IsCompatibleWith(gradient.shape)) {
    return ShapeMismatch(shape_.ToString(), gradient.shape);
  }
  return absl::OkStatus();
}

Gradient DenseAccumulator::CopyOf(const TensorView& gradient) const {
  Tensor copy(gradient.dtype, gradient.shape);
  Copy(gradient, copy.view());
  return {std::move(copy)};
}

DenseGradients DenseAccumulator::Reduce(ps::TakenGradients taken) const {
  DenseGradients reduced;
  for (ps::HeldGradient& held : taken.gradients) {
    reduced.gradients.push_back(std::move(held.gradient.value));
  }
  if (reduction() == Reduction::kMean) reduced.divisor = taken.divisor;
  return reduced;
}

}  // namespace lockstep::reference
