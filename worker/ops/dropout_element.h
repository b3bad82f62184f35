// Dropout of one element, the same on every device.
#pragma once

#include <cstdint>

#include "common/base/host_device.h"

namespace lockstep::worker {

// Numbers that one block of the generator has: element i is decided by number i % 4 of block i / 4.
inline constexpr int64_t kDropoutPerBlock = 4;

// `number` as common/base/philox.h's UniformFloat takes it.
LOCKSTEP_HOST_DEVICE inline bool KeepsElement(uint32_t number, float rate) {
  return static_cast<float>(number >> 8) * 0x1.0p-24f >= rate;
}

// Of a value, and of its gradient.
LOCKSTEP_HOST_DEVICE inline float DropElement(float x, bool kept, float scale) {
  return kept ? x * scale : 0.0f;
}

}  // namespace lockstep::worker
