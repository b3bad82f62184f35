#include "common/optimizer/powers.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "common/base/check.h"

namespace lockstep {
namespace {

constexpr int kMantissaBits = 23;
constexpr int kExponentBias = 127;
constexpr float kMostSquared = 7;          // an integer exponent up to here: by repeated squaring
constexpr float kLargestExponent = 1e10f;  // from here on every power is 0, 1 or infinite

// The sum of two floats, of which the smaller one is the rounding error of the larger one.
struct DoubleWord {
  float high;
  float low;
};

constexpr DoubleWord DoubleWordOf(double number) {
  const auto high = static_cast<float>(number);
  return {high, static_cast<float>(number - static_cast<double>(high))};
}

// Exact where |x| >= |y| (Muller's algorithm Fast2Sum).
inline DoubleWord FastSum(float x, float y) {
  const float sum = x + y;
  return {sum, y - (sum - x)};
}

inline DoubleWord FastSum(DoubleWord x, DoubleWord y) {
  const DoubleWord high = FastSum(x.high, y.high);
  return FastSum(high.high, (y.low + high.low) + x.low);
}

// Into two halves of 12 bits (Veltkamp).
inline DoubleWord Halves(float x) {
  const float scaled = 4097.0f * x;
  const float high = (x - scaled) + scaled;
  return {high, x - high};
}

// Exact (Dekker).
inline DoubleWord Product(float x, float y) {
  const DoubleWord x_halves = Halves(x);
  const DoubleWord y_halves = Halves(y);
  const float product = x * y;
  float error = x_halves.high * y_halves.high - product;
  error = x_halves.high * y_halves.low + error;
  error = x_halves.low * y_halves.high + error;
  error = x_halves.low * y_halves.low + error;
  return {product, error};
}

inline DoubleWord Product(DoubleWord x, float y) {
  const DoubleWord high = Product(x.high, y);
  const DoubleWord sum = FastSum(high.high, x.low * y);
  return FastSum(sum.high, sum.low + high.low);
}

// log2(mantissa) for mantissas from sqrt(1/2) to sqrt(2): x * P(x), where x = mantissa - 1 and P is
// a minimax polynomial of log2(1 + x) / x whose lowest two coefficients are double words.
inline DoubleWord Log2(float mantissa) {
  constexpr DoubleWord kC0 = DoubleWordOf(1.4426950417421103);
  constexpr DoubleWord kC1 = DoubleWordOf(-0.72134751588268664);
  const float x = mantissa - 1;
  float rest = 9.70108286e-2f;
  rest = rest * x - 1.68964863e-1f;
  rest = rest * x + 1.72008365e-1f;
  rest = rest * x - 1.78922728e-1f;
  rest = rest * x + 2.05053449e-1f;
  rest = rest * x - 2.40466774e-1f;
  rest = rest * x + 2.88575530e-1f;
  rest = rest * x - 3.60674143e-1f;
  rest = rest * x + 4.80897903e-1f;
  const DoubleWord first = FastSum(kC1, Product(x, rest));
  return Product(FastSum(kC0, Product(first, x)), x);
}

// To the nearest integer, halves away from zero. |x| < 2^22.
inline int32_t Round(float x) {
  constexpr float kBelowHalf = 0x1.fffffep-2f;
  return static_cast<int32_t>(x + (x < 0 ? -kBelowHalf : kBelowHalf));
}

// x * 2^exponent for exponents from -252 to 254, rounded once: the first of the two factors leaves
// x a normal number.
inline float Scale(float x, int32_t exponent) {
  const int32_t half = exponent / 2;
  const auto power_of_two = [](int32_t n) {
    return std::bit_cast<float>((n + kExponentBias) << kMantissaBits);
  };
  return x * power_of_two(half) * power_of_two(exponent - half);
}

// For |x| < 1, by the Cephes library's reduction to |r| <= log(2) / 2.
inline float Exp(float x) {
  const float scaled = x * 1.44269504f + 0.5f;
  const auto towards_zero = static_cast<int32_t>(scaled);
  const int32_t exponent = towards_zero - (static_cast<float>(towards_zero) > scaled ? 1 : 0);
  const auto m = static_cast<float>(exponent);
  const float r = m * 2.12194440e-4f + (m * -0.693359375f + x);
  const float r2 = r * r;
  const float even = r2 * (r2 * 1.37449638e-3f + 4.16696519e-2f) + 0.499999881f;
  const float odd = r2 * 8.36894475e-3f + 0.166665182f;
  return Scale(r2 * (r * odd + even) + (r + 1), exponent);
}

// 2^x for |x| <= 1/2 and a little.
inline float Exp2(float x) {
  const DoubleWord product = Product(0.693147181f, x);
  return Exp(product.high) * (1 + product.low);
}

// base^exponent of a positive, finite base; anything of another one. y * log2(base) is the sum of
// y * (the base's exponent) and y * log2(mantissa), and is split into an integer and a rest.
inline float PositivePower(float base, float exponent) {
  constexpr float kRootOfHalf = 0.707106781f;
  constexpr int32_t kNormalizing = kMantissaBits + 1;
  const bool is_subnormal = base < std::numeric_limits<float>::min();
  const float normal = base * (is_subnormal ? 0x1p24f : 1.0f);
  const auto bits = std::bit_cast<int32_t>(normal);
  int32_t binary = ((bits >> kMantissaBits) & 0xff) - (kExponentBias - 1);
  binary -= is_subnormal ? kNormalizing : 0;
  float mantissa = std::bit_cast<float>((bits & 0x007fffff) | 0x3f000000);  // [1/2, 1)
  const bool is_small = mantissa < kRootOfHalf;
  mantissa = is_small ? 2 * mantissa : mantissa;
  binary -= is_small ? 1 : 0;

  const DoubleWord of_binary = Product(static_cast<float>(binary), exponent);
  const DoubleWord log = FastSum(of_binary, Product(Log2(mantissa), exponent));
  // Beyond these the power is infinite or 0. Written so that NaN is a bound too.
  const float least = log.high > -252.0f ? log.high : -252.0f;
  const float high = least < 253.0f ? least : 253.0f;
  const int32_t integer = Round(high);
  const float rest = (high - static_cast<float>(integer)) + log.low;
  const float safe_rest = std::abs(rest) < 1.5f ? rest : 0.0f;
  const int32_t carry = Round(safe_rest);
  return Scale(Exp2(safe_rest - static_cast<float>(carry)), integer + carry);
}

inline float VectorPower(float base, float exponent) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  float power = PositivePower(base, exponent);
  power = base == 0 ? 0.0f : power;
  power = base == 1 ? 1.0f : power;
  power = base == kInfinity ? kInfinity : power;
  return base >= 0 ? power : std::numeric_limits<float>::quiet_NaN();
}

inline float SquaredPower(float base, int exponent) {
  if (exponent == 0) return 1;
  float power = 1;
  for (; exponent > 1; exponent /= 2) {
    if (exponent % 2 != 0) power *= base;
    base *= base;
  }
  return power * base;
}

}  // namespace

void PowersOf(absl::Span<const float> bases, float exponent, absl::Span<float> powers) {
  LOCKSTEP_CHECK(bases.size() == powers.size());
  const size_t in_vectors = bases.size() / kPowersAtATime * kPowersAtATime;
  const float* const base = bases.data();
  float* const power = powers.data();
  if (exponent <= kMostSquared && exponent == std::round(exponent)) {
    const auto integer = static_cast<int>(exponent);
    for (size_t i = 0; i < in_vectors; ++i) power[i] = SquaredPower(base[i], integer);
  } else {
    const float bounded = std::min(exponent, kLargestExponent);
#pragma GCC ivdep
    for (size_t i = 0; i < in_vectors; ++i) power[i] = VectorPower(base[i], bounded);
  }
  for (size_t i = in_vectors; i < bases.size(); ++i) power[i] = std::pow(base[i], exponent);
}

void PowersOf(absl::Span<const double> bases, double exponent, absl::Span<double> powers) {
  LOCKSTEP_CHECK(bases.size() == powers.size());
  for (size_t i = 0; i < bases.size(); ++i) powers[i] = std::pow(bases[i], exponent);
}

}  // namespace lockstep
