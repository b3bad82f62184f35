// Conversions to half the width and back, all 65,536 patterns of it, by the definition of the
// types.
#include "common/tensor/half_copy.h"

#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <vector>

#include "common/tensor/vector_target.h"

namespace lockstep {
namespace {

// Bits of a type of half the width.
struct Format {
  DType dtype;
  int fraction_bits;
  int bias;

  uint16_t infinity() const {
    return static_cast<uint16_t>(0x7fff >> fraction_bits << fraction_bits);
  }
  bool IsNan(uint16_t half) const { return (half & 0x7fff) > infinity(); }
  double ValueOf(uint16_t half) const {
    const int magnitude = half & 0x7fff;
    const int exponent = magnitude >> fraction_bits;
    const int fraction = magnitude & ((1 << fraction_bits) - 1);
    double value = 0;
    if (magnitude == infinity()) {
      value = std::numeric_limits<double>::infinity();
    } else if (exponent == 0) {
      value = std::ldexp(fraction, 1 - bias - fraction_bits);
    } else {
      value = std::ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits);
    }
    return half >= 0x8000 ? -value : value;
  }
};

constexpr Format kFormats[] = {{DType::kFloat16, 10, 15}, {DType::kBFloat16, 7, 127}};

std::vector<uint16_t> AllHalves() {
  std::vector<uint16_t> halves;
  for (int bits = 0; bits < 0x10000; ++bits) halves.push_back(static_cast<uint16_t>(bits));
  return halves;
}

std::vector<float> Widened(DType dtype, const std::vector<uint16_t>& halves) {
  std::vector<float> wide(halves.size());
  Widen(dtype, halves.data(), wide);
  return wide;
}

std::vector<uint16_t> Narrowed(DType dtype, const std::vector<float>& wide) {
  std::vector<uint16_t> halves(wide.size());
  Narrow(wide, dtype, halves.data());
  return halves;
}

uint16_t Narrowed(DType dtype, float wide) { return Narrowed(dtype, std::vector{wide})[0]; }

// check(format) for both types, with every set of vector instructions that this CPU has.
template <typename Check>
void ForAllFormats(Check check) {
  for (const VectorTarget target : SupportedVectorTargets()) {
    LimitVectorTarget(target);
    for (const Format& format : kFormats) {
      CAPTURE(Name(target), Name(format.dtype));
      check(format);
    }
  }
  LimitVectorTarget(VectorTarget::kAvx512);
}

TEST_CASE("every half is widened to what it stands for, and narrowed to itself again") {
  const std::vector<uint16_t> halves = AllHalves();
  ForAllFormats([&](const Format& format) {
    const std::vector<float> wide = Widened(format.dtype, halves);
    const std::vector<uint16_t> again = Narrowed(format.dtype, wide);
    int wrong = 0;
    for (const uint16_t half : halves) {
      if (format.IsNan(half)) {
        wrong += !std::isnan(wide[half]) || std::signbit(wide[half]) != (half >= 0x8000);
        wrong += !format.IsNan(again[half]) || (again[half] ^ half) >= 0x8000;
      } else {
        const auto expected = static_cast<float>(format.ValueOf(half));
        wrong += std::bit_cast<uint32_t>(wide[half]) != std::bit_cast<uint32_t>(expected);
        wrong += again[half] != half;
      }
    }
    CHECK(wrong == 0);
  });
}

TEST_CASE("a float is rounded to the nearest half, and from the middle to the even one") {
  ForAllFormats([](const Format& format) {
    // From each half to the next: the end of the subnormal numbers and the step to infinity are
    // among them. As many float32 lie between zero and the smallest half as between other pairs,
    // or more, so that the middle is one.
    std::vector<float> below, middle, above;
    for (uint16_t half = 0; half < format.infinity(); ++half) {
      const auto next = static_cast<uint16_t>(half + 1);
      const double upper = next == format.infinity()
                               ? 2 * format.ValueOf(half) - format.ValueOf(half - 1)
                               : format.ValueOf(next);
      middle.push_back(static_cast<float>((format.ValueOf(half) + upper) / 2));
      below.push_back(std::nextafter(middle.back(), 0.0f));
      above.push_back(std::nextafter(middle.back(), std::numeric_limits<float>::infinity()));
    }
    const std::vector<uint16_t> from_below = Narrowed(format.dtype, below);
    const std::vector<uint16_t> from_middle = Narrowed(format.dtype, middle);
    const std::vector<uint16_t> from_above = Narrowed(format.dtype, above);
    int wrong = 0;
    for (int half = 0; half < format.infinity(); ++half) {
      wrong += from_below[half] != half;
      wrong += from_middle[half] != half + half % 2;
      wrong += from_above[half] != half + 1;
      wrong += Narrowed(format.dtype, -above[half]) != (0x8000 | (half + 1));
    }
    CHECK(wrong == 0);
  });
}

TEST_CASE("a NaN stays one, whichever bits of its payload are left") {
  ForAllFormats([](const Format& format) {
    for (int bit = 0; bit < 23; ++bit) {
      const uint32_t bits = 0x7f800000u | 1u << bit;
      CAPTURE(bit);
      CHECK(format.IsNan(Narrowed(format.dtype, std::bit_cast<float>(bits))));
      const uint16_t negative = Narrowed(format.dtype, std::bit_cast<float>(bits | 0x80000000u));
      CHECK((format.IsNan(negative) && negative >= 0x8000));
    }
    CHECK(format.IsNan(Narrowed(format.dtype, std::bit_cast<float>(0x7fffffffu))));
  });
}

TEST_CASE("what is out of range becomes infinite or zero, with its sign") {
  ForAllFormats([](const Format& format) {
    const float infinity = std::numeric_limits<float>::infinity();
    CHECK(Narrowed(format.dtype, infinity) == format.infinity());
    CHECK(Narrowed(format.dtype, -std::numeric_limits<float>::max()) ==
          (0x8000 | format.infinity()));
    CHECK(Narrowed(format.dtype, std::numeric_limits<float>::denorm_min()) == 0);
    CHECK(Narrowed(format.dtype, -std::numeric_limits<float>::denorm_min()) == 0x8000);
  });
  CHECK(Narrowed(DType::kFloat16, 65519.996f) == 0x7bff);
  CHECK(Narrowed(DType::kFloat16, 65520.0f) == 0x7c00);
}

TEST_CASE("any number of elements is converted, and nothing beside them") {
  for (size_t count = 0; count < 70; ++count) {
    std::vector<uint16_t> halves(count + 2, 0x1234);
    Narrow(std::vector<float>(count, 1.0f), DType::kBFloat16, halves.data() + 1);
    std::vector<float> wide(count + 2, 7.0f);
    Widen(DType::kBFloat16, halves.data() + 1, std::span(wide).subspan(1, count));
    std::vector<float> expected(count + 2, 1.0f);
    expected.front() = expected.back() = 7.0f;
    CHECK(wide == expected);
    CHECK((halves.front() == 0x1234 && halves.back() == 0x1234));
  }
}

}  // namespace
}  // namespace lockstep
