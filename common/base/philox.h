// Philox4x32-10, the counter-based generator (Salmon et al., "Parallel random numbers: as easy as
// 1, 2, 3", SC'11): a pure function of (key, counter), so any element of a random tensor can be
// made alone, on any machine, and comes out the same.
#pragma once

#include <array>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "common/base/mix_seeds.h"

namespace lockstep {

class Philox {
 public:
  using Block = std::array<uint32_t, 4>;

  // A stream named by a seed and a purpose, such as a variable's name. Different names give
  // independent streams.
  Philox(uint64_t seed, absl::string_view purpose);
  explicit Philox(uint64_t key) : key_(key) {}

  // The block with this number; `lane` separates several streams under one key.
  Block At(uint64_t counter, uint64_t lane = 0) const;

 private:
  uint64_t key_;
};

// Uniform in [0, 1), from the top 24 bits: every value is exact in float.
inline float UniformFloat(uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1.0p-24f; }

}  // namespace lockstep
