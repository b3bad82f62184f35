// Elements of matrices and images that libraries of the host imitate: float32 or bfloat16.
#pragma once

#include <cstdint>

#include "common/tensor/bfloat16.h"

namespace lockstep::test {

// Does not own.
struct FakeElements {
  void* data = nullptr;
  bool is_bfloat16 = false;

  double At(int64_t i) const {
    return is_bfloat16 ? double{static_cast<float>(static_cast<const BFloat16*>(data)[i])}
                       : double{static_cast<const float*>(data)[i]};
  }
  // To bfloat16 by way of float32, as the libraries do, whose sums are float32.
  void Set(int64_t i, double value) const {
    const auto single = static_cast<float>(value);
    if (is_bfloat16) {
      static_cast<BFloat16*>(data)[i] = BFloat16(single);
    } else {
      static_cast<float*>(data)[i] = single;
    }
  }
};

}  // namespace lockstep::test
