// That these are TensorFlow's bits, tests/oracle holds; here: that they are powers at all, and
// which elements are libm's.
#include "common/optimizer/powers.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <vector>

namespace lockstep {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

template <typename T>
std::vector<T> Powers(const std::vector<T>& bases, T exponent) {
  std::vector<T> powers(bases.size());
  PowersOf(absl::Span<const T>(bases), exponent, absl::MakeSpan(powers));
  return powers;
}

// From 2^-125 to 2^127, a different mantissa for each.
std::vector<float> Bases(size_t count) {
  std::vector<float> bases;
  for (size_t i = 0; i < count; ++i) {
    const float mantissa = 1 + static_cast<float>((i * 7919) % 8192) / 8192;
    bases.push_back(std::ldexp(mantissa, static_cast<int>((i * 31) % 252) - 125));
  }
  return bases;
}

double UlpsApart(float got, double expected) {
  const auto nearest = static_cast<float>(expected);
  const double ulp = std::nextafter(nearest, kInfinity) - nearest;
  return std::abs(got - expected) / ulp;
}

TEST_CASE("a power is within three units in the last place of the true one") {
  const std::vector<float> bases = Bases(100'000);
  for (const float exponent : {.1f, .3f, .5f, .7f, .9f, .99999994f, 1.3f}) {
    CAPTURE(exponent);
    const std::vector<float> powers = Powers(bases, exponent);
    double worst = 0;
    for (size_t i = 0; i < bases.size(); ++i) {
      const double expected = std::pow(double{bases[i]}, double{exponent});
      const bool is_normal = expected < std::numeric_limits<float>::max() &&
                             expected > std::numeric_limits<float>::min();
      if (is_normal) worst = std::max(worst, UlpsApart(powers[i], expected));
    }
    CHECK(worst < 3);
    CHECK(worst > 0.5);  // libm's would not be: this is the other algorithm
  }
}

TEST_CASE("the elements that fill no vector are libm's, and only those") {
  const std::vector<float> bases = Bases(4'000);
  size_t others = 0;
  for (size_t count = 1; count < 40; ++count) {
    for (size_t begin = 0; begin + count <= bases.size(); begin += count) {
      const std::vector<float> part(bases.begin() + begin, bases.begin() + begin + count);
      const std::vector<float> powers = Powers(part, .7f);
      const size_t in_vectors = count - count % kPowersAtATime;
      for (size_t i = 0; i < count; ++i) {
        const bool is_libm = powers[i] == std::pow(part[i], .7f);
        if (i >= in_vectors) REQUIRE(is_libm);
        if (!is_libm) ++others;
      }
    }
  }
  CHECK(others > 10'000);
}

TEST_CASE("a tensor's powers are the same in parts that are cut where vectors begin") {
  const std::vector<float> bases = Bases(1'003);
  const std::vector<float> whole = Powers(bases, .3f);
  std::vector<float> parts;
  for (size_t begin = 0; begin < bases.size(); begin += 48) {
    const size_t end = std::min(begin + 48, bases.size());
    const auto part = Powers({bases.begin() + begin, bases.begin() + end}, .3f);
    parts.insert(parts.end(), part.begin(), part.end());
  }
  CHECK(parts == whole);
}

TEST_CASE("an integer power is a product") {
  const std::vector<float> bases = {0, 1, 2, .3f, 1.1f, 7, 1e-3f, 123.456f};
  CHECK(Powers(bases, 0.f) == std::vector<float>(8, 1));
  CHECK(Powers(bases, -0.f) == std::vector<float>(8, 1));
  CHECK(Powers(bases, 1.f) == bases);
  const std::vector<float> cubes = Powers(bases, 3.f);
  for (size_t i = 0; i < bases.size(); ++i) CHECK(cubes[i] == bases[i] * (bases[i] * bases[i]));
  const std::vector<float> ninths = Powers(bases, 9.f);
  for (size_t i = 0; i < bases.size(); ++i) CHECK(ninths[i] == Approx(std::pow(bases[i], 9)));
}

TEST_CASE("zero, one, what is not finite, subnormal or negative has the power that it should") {
  const float smallest = std::numeric_limits<float>::denorm_min();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> powers =
      Powers({0, -0.f, 1, kInfinity, smallest, 3 * smallest, -1, nan}, .7f);
  CHECK(powers[0] == 0);
  CHECK(powers[1] == 0);
  CHECK(powers[2] == 1);
  CHECK(powers[3] == kInfinity);
  CHECK(powers[4] == Approx(std::pow(double{smallest}, .7f)).epsilon(1e-6));
  CHECK(powers[5] == Approx(std::pow(double{3 * smallest}, .7f)).epsilon(1e-6));
  CHECK(std::isnan(powers[6]));
  CHECK(std::isnan(powers[7]));
}

TEST_CASE("a power out of range is zero or infinite, whatever the exponent") {
  const std::vector<float> bases = {1e-30f, 1e30f, .5f, 2, .999f, 1.001f, 1e-38f, 3e38f};
  const float largest = std::numeric_limits<float>::max();
  for (const float exponent : {7.5f, 200.5f, 1e6f + .5f, 1e20f, 1e36f, largest}) {
    CAPTURE(exponent);
    const std::vector<float> powers = Powers(bases, exponent);
    for (size_t i = 0; i < bases.size(); ++i) {
      const auto expected = static_cast<float>(std::pow(double{bases[i]}, double{exponent}));
      CAPTURE(bases[i], expected);
      const bool is_normal = expected > std::numeric_limits<float>::min() && expected < kInfinity;
      if (is_normal) {
        CHECK(powers[i] == Approx(expected).epsilon(1e-5));
      } else {
        CHECK(powers[i] == expected);
      }
    }
  }
}

TEST_CASE("powers of doubles are libm's") {
  const std::vector<double> bases = {.1, .2, .3, .4, 5, 6, 7, 8, 9};
  const std::vector<double> powers = Powers(bases, .7);
  for (size_t i = 0; i < bases.size(); ++i) CHECK(powers[i] == std::pow(bases[i], .7));
}

}  // namespace
}  // namespace lockstep
