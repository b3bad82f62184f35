// The two loops of a dense accumulator, in the arithmetic of the elements' own type: each sum and
// each quotient is rounded to it. float32, float64, float16, bfloat16.
#pragma once

#include "common/tensor/tensor.h"

namespace lockstep::ps {

bool HasElementMath(DType dtype);

// sum += term. Same dtype and number of elements (CHECK).
void AddTo(MutableTensorView sum, TensorView term);
// sum /= count, with count rounded to the dtype first.
void DivideBy(MutableTensorView sum, int count);

}  // namespace lockstep::ps
