// Where the memory of tensors comes from, for those who make them.
#pragma once

#include <functional>

#include "common/tensor/tensor.h"

namespace lockstep {

// Makes a tensor of the host, not initialised.
using TensorMaker = std::function<Tensor(DType, const Shape&)>;

inline Tensor OnHeap(DType dtype, const Shape& shape) { return Tensor(dtype, shape); }

}  // namespace lockstep
