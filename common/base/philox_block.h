// The arithmetic of common/base/philox.h, for the host and for kernels.
#pragma once

#include <cstdint>

#include "common/base/host_device.h"

namespace lockstep {

struct PhiloxNumbers {
  uint32_t at[4];
};

LOCKSTEP_HOST_DEVICE inline PhiloxNumbers PhiloxBlock(uint64_t key, uint64_t counter,
                                                      uint64_t lane) {
  constexpr uint32_t kMultiplier0 = 0xD2511F53;
  constexpr uint32_t kMultiplier1 = 0xCD9E8D57;
  constexpr uint32_t kWeyl0 = 0x9E3779B9;
  constexpr uint32_t kWeyl1 = 0xBB67AE85;
  constexpr int kRounds = 10;
  PhiloxNumbers x = {{static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32),
                      static_cast<uint32_t>(lane), static_cast<uint32_t>(lane >> 32)}};
  uint32_t k0 = static_cast<uint32_t>(key);
  uint32_t k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t p0 = static_cast<uint64_t>(kMultiplier0) * x.at[0];
    const uint64_t p1 = static_cast<uint64_t>(kMultiplier1) * x.at[2];
    x = {{static_cast<uint32_t>(p1 >> 32) ^ x.at[1] ^ k0, static_cast<uint32_t>(p1),
          static_cast<uint32_t>(p0 >> 32) ^ x.at[3] ^ k1, static_cast<uint32_t>(p0)}};
    k0 += kWeyl0;
    k1 += kWeyl1;
  }
  return x;
}

}  // namespace lockstep
