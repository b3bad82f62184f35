#include "common/tensor/tensor.h"

#include <cstdlib>
#include <cstring>

namespace lockstep {

Tensor::Tensor(DType dtype, Shape shape) : dtype_(dtype), shape_(std::move(shape)) {
  const size_t rounded = (num_bytes() + kAlignment - 1) / kAlignment * kAlignment;
  memory_.reset(
      static_cast<std::byte*>(std::aligned_alloc(kAlignment, rounded == 0 ? kAlignment : rounded)));
  LOCKSTEP_CHECK(memory_ != nullptr);
}

Tensor Tensor::Zeros(DType dtype, Shape shape) {
  Tensor tensor(dtype, std::move(shape));
  tensor.FillZero();
  return tensor;
}

Tensor Tensor::Clone() const {
  Tensor copy(dtype_, shape_);
  Copy(view(), copy.view());
  return copy;
}

void Tensor::FillZero() {
  if (num_bytes() != 0) std::memset(memory_.get(), 0, num_bytes());
}

void Tensor::Free::operator()(std::byte* memory) const { std::free(memory); }

void Copy(TensorView from, MutableTensorView to) {
  LOCKSTEP_CHECK(from.dtype == to.dtype && from.num_bytes() == to.num_bytes());
  if (from.num_bytes() != 0) std::memcpy(to.data, from.data, from.num_bytes());
}

}  // namespace lockstep
