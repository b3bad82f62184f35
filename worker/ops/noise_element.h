// Normal numbers from uniform ones, on every device.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

#include "common/base/host_device.h"

namespace lockstep::worker {

// Numbers that one block of the generator gives: elements 4 i to 4 i + 3 are of block i.
inline constexpr int64_t kNoisePerBlock = 4;

struct NormalPair {
  float at[2];
};

// Two independent standard normal numbers of two uniform ones (Box and Muller, "A note on the
// generation of random normal deviates", 1958).
LOCKSTEP_HOST_DEVICE inline NormalPair NormalOf(uint32_t first, uint32_t second) {
  const double u = (static_cast<double>(first) + 1.0) * 0x1.0p-32;  // in (0, 1]
  const double angle = 2 * std::numbers::pi * static_cast<double>(second) * 0x1.0p-32;
  const double radius = std::sqrt(-2 * std::log(u));
  return {
      {static_cast<float>(radius * std::cos(angle)), static_cast<float>(radius * std::sin(angle))}};
}

}  // namespace lockstep::worker
