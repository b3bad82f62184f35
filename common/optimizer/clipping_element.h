// The formulas of clipping.h for one element and one norm, the same on every device. T: float or
// double.
#pragma once

#include <cmath>

#include "common/base/host_device.h"

namespace lockstep {

// A NaN stays one.
template <typename T>
LOCKSTEP_HOST_DEVICE inline T ClippedValue(T x, T least, T most) {
  const T below = x > most ? most : x;
  return below < least ? least : below;
}

// An element becomes x * limit / divisor. A norm that is no number stays one.
template <typename T>
LOCKSTEP_HOST_DEVICE inline T NormDivisor(T norm, T limit) {
  return norm <= limit ? limit : norm;
}

// By which every element is multiplied for a common norm of at most `limit`.
template <typename T>
LOCKSTEP_HOST_DEVICE inline T GlobalNormScale(T norm, T limit) {
  if (!std::isfinite(norm)) return static_cast<T>(NAN);
  const T of_norm = 1 / norm;
  const T of_limit = 1 / limit;
  return limit * (of_limit < of_norm ? of_limit : of_norm);
}

}  // namespace lockstep
