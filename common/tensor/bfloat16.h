// The upper half of a float. Compiled for a GPU too, so without abseil.
#pragma once

#include <bit>
#include <cstdint>

namespace lockstep {

// A float's range, with 8 bits of precision. Rounds to nearest, ties to even. A NaN stays one and
// keeps its sign and the upper bits of its payload; it becomes quiet. Plain operations without
// branches, so that loops become vector instructions of any machine and give the same bits on all.
class BFloat16 {
 public:
  BFloat16() = default;  // any value
  explicit constexpr BFloat16(float value) : bits_(Round(std::bit_cast<uint32_t>(value))) {}
  explicit constexpr operator float() const {
    return std::bit_cast<float>(static_cast<uint32_t>(bits_) << 16);
  }

 private:
  static constexpr uint16_t Round(uint32_t bits) {
    const bool is_nan = static_cast<int32_t>(bits & 0x7fffffffu) > 0x7f800000;
    const uint32_t rounded = is_nan ? bits | 0x00400000u : bits + 0x7fffu + ((bits >> 16) & 1u);
    return static_cast<uint16_t>(rounded >> 16);
  }

  uint16_t bits_;
};

static_assert(sizeof(BFloat16) == 2);

}  // namespace lockstep
