// Sigmoid and tanh that the compiler turns into vector code in a loop, which the library's are not.
// A GPU computes the same bits.
#pragma once

#include <bit>
#include <cstdint>

#include "common/base/host_device.h"

namespace lockstep::worker {

// exp(x) of x cut off at +-87, so that the result is a normal number: 2^n exp(r) with n the nearest
// whole number to x / ln 2. Taylor's series of exp(r), |r| <= ln(2) / 2, is within 6e-9 of it. A
// NaN stays one.
LOCKSTEP_HOST_DEVICE inline float VectorExp(float x) {
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to a whole number
  constexpr float kLog2E = 1.44269504f;
  constexpr float kLn2High = 0.693359375f;  // 9 bits: n times it is exact
  constexpr float kLn2Low = -2.12194440e-4f;
  x = x < -87.0f ? -87.0f : x;
  x = x > 87.0f ? 87.0f : x;
  const float shifted = x * kLog2E + kRound;
  const float n = shifted - kRound;
  const float r = (x - n * kLn2High) - n * kLn2Low;
  float sum = 1.0f / 5040;
  sum = sum * r + 1.0f / 720;
  sum = sum * r + 1.0f / 120;
  sum = sum * r + 1.0f / 24;
  sum = sum * r + 1.0f / 6;
  sum = sum * r + 0.5f;
  sum = sum * r + 1.0f;
  sum = sum * r + 1.0f;
  // The low bits of `shifted` are n.
  const uint32_t exponent = (std::bit_cast<uint32_t>(shifted) + 127u) << 23;
  return sum * std::bit_cast<float>(exponent);
}

LOCKSTEP_HOST_DEVICE inline float VectorSigmoid(float x) { return 1.0f / (1.0f + VectorExp(-x)); }

// Within 1.2e-7 of tanh(x), not relative to it.
LOCKSTEP_HOST_DEVICE inline float VectorTanh(float x) {
  return 1.0f - 2.0f / (1.0f + VectorExp(2.0f * x));
}

}  // namespace lockstep::worker
