// Random whole numbers out of random bits.
#pragma once

#include <cstdint>

namespace lockstep::worker {

// Uniform in [0, bound), bound > 0: the high word of bits * bound. The bias is below bound / 2^64.
inline int64_t UniformBelow(int64_t bound, uint32_t high, uint32_t low) {
  const uint64_t bits = static_cast<uint64_t>(high) << 32 | low;
  return static_cast<int64_t>(static_cast<unsigned __int128>(bits) * bound >> 64);
}

}  // namespace lockstep::worker
