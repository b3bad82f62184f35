// TensorMaker allocates new tensors; the caller of an API passes one to choose their memory.
#pragma once

#include <functional>

#include "common/tensor/tensor.h"

namespace lockstep {

// Makes an uninitialised tensor in host memory.
using TensorMaker = std::function<Tensor(DType, const Shape&)>;

inline Tensor OnHeap(DType dtype, const Shape& shape) { return Tensor(dtype, shape); }

}  // namespace lockstep
