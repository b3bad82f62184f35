// Numbers in half the width, for tests that know what must come out.
#pragma once

#include <cstdint>
#include <vector>

#include "common/tensor/half_copy.h"

namespace lockstep::test {

// As float16 or bfloat16.
inline std::vector<uint16_t> Narrowed(const std::vector<float>& values, DType type) {
  std::vector<uint16_t> halves(values.size());
  Narrow(values, type, halves.data());
  return halves;
}

// What is left of them.
inline std::vector<float> Rounded(const std::vector<float>& values, DType type) {
  std::vector<float> rounded(values.size());
  Widen(type, Narrowed(values, type).data(), rounded);
  return rounded;
}

}  // namespace lockstep::test
