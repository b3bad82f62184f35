// Calls a template of the update rules with the type of a variable's elements.
#pragma once

#include "common/base/check.h"
#include "common/tensor/dtype.h"

namespace lockstep {

// body.template operator()<float>() or <double>(). Other dtypes have no optimizer kernels.
template <typename Body>
void DispatchFloat(DType dtype, Body body) {
  if (dtype == DType::kFloat32) {
    body.template operator()<float>();
  } else {
    LOCKSTEP_CHECK(dtype == DType::kFloat64);
    body.template operator()<double>();
  }
}

}  // namespace lockstep
