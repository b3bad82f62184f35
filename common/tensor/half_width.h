// The two floating-point types of 16 bits. What is computed with them is computed in float and
// rounded to nearest, ties to even. In plain operations without branches, so that loops over them
// become vector instructions of any machine and give the same bits on all.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>

#include "common/tensor/bfloat16.h"
#include "common/tensor/dtype.h"

namespace lockstep {

inline bool IsHalfWidth(DType dtype) {
  return dtype == DType::kFloat16 || dtype == DType::kBFloat16;
}

// IEEE 754 half precision: 11 bits of precision, magnitudes up to 65504. What rounds to more is
// infinite; NaN as in BFloat16.
class Float16 {
 public:
  Float16() = default;  // any value
  explicit Float16(float value) {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    const auto magnitude = static_cast<int32_t>(bits & 0x7fffffffu);
    // The exponent's bias goes from 127 to 15; 13 bits of the fraction are rounded away.
    const int32_t normal = (magnitude - kBias + 0xfff + ((magnitude >> 13) & 1)) >> 13;
    // The last bit of a float in [0.5, 1) is the smallest subnormal number: the sum rounds to it.
    const int32_t subnormal =
        std::bit_cast<int32_t>(std::bit_cast<float>(magnitude) + 0.5f) - kBitsOfHalf;
    const int32_t nan = 0x7e00 | ((magnitude >> 13) & 0x3ff);
    int32_t half = Choose(magnitude < kSmallestNormal, subnormal, normal);
    half = Choose(magnitude >= kOverflow, 0x7c00, half);
    half = Choose(magnitude > kInfinity, nan, half);
    bits_ = static_cast<uint16_t>(static_cast<uint32_t>(half) | ((bits >> 16) & 0x8000u));
  }
  explicit operator float() const {
    const int32_t magnitude = bits_ & 0x7fff;
    const int32_t normal = (magnitude << 13) + kBias;
    const int32_t not_finite = (magnitude << 13) | kInfinity;
    const auto subnormal = std::bit_cast<int32_t>(static_cast<float>(magnitude) * 0x1p-24f);
    int32_t wide = Choose(magnitude < 0x400, subnormal, normal);
    wide = Choose(magnitude >= 0x7c00, not_finite, wide);
    return std::bit_cast<float>(static_cast<uint32_t>(wide) |
                                (static_cast<uint32_t>(bits_ & 0x8000) << 16));
  }

 private:
  // The compiler must not skip a computation that is not chosen: a loop with branches is no vector
  // loop.
  static int32_t Choose(bool condition, int32_t yes, int32_t no) {
    const int32_t mask = -static_cast<int32_t>(condition);
    return (yes & mask) | (no & ~mask);
  }

  static constexpr int32_t kBias = (127 - 15) << 23;
  static constexpr int32_t kBitsOfHalf = std::bit_cast<int32_t>(0.5f);
  static constexpr int32_t kSmallestNormal = std::bit_cast<int32_t>(0x1p-14f);
  static constexpr int32_t kOverflow = std::bit_cast<int32_t>(65520.0f);  // half way to the next
  static constexpr int32_t kInfinity = 0x7f800000;

  uint16_t bits_;
};

static_assert(sizeof(Float16) == 2);

// A sum or quotient of two halves that is computed in float and rounded again is correctly rounded:
// float has more than twice the digits.
template <typename Half>
requires std::same_as<Half, BFloat16> || std::same_as<Half, Float16> Half operator+(Half a,
                                                                                    Half b) {
  return Half(static_cast<float>(a) + static_cast<float>(b));
}
template <typename Half>
requires std::same_as<Half, BFloat16> || std::same_as<Half, Float16> Half operator/(Half a,
                                                                                    Half b) {
  return Half(static_cast<float>(a) / static_cast<float>(b));
}

}  // namespace lockstep
