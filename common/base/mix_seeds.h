// Keys made of several numbers, on the host and in kernels.
#pragma once

#include <cstdint>

#include "common/base/host_device.h"

namespace lockstep {

// Mixes two words into one, for keys made of several numbers (seed, replica, step). The finaliser
// of splitmix64 (Steele, Lea, Flood, OOPSLA'14).
LOCKSTEP_HOST_DEVICE inline uint64_t MixSeeds(uint64_t a, uint64_t b) {
  uint64_t z = a + 0x9E3779B97F4A7C15u * (b + 1);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

}  // namespace lockstep
