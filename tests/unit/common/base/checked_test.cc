#include "common/base/checked.h"

#include <catch2/catch.hpp>
#include <limits>

namespace lockstep {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();

TEST_CASE("Products and sums that fit are exact") {
  CHECK(CheckedMultiply(3, -4) == -12);
  CHECK(CheckedMultiply(kMax, 1) == kMax);
  CHECK(CheckedMultiply(kMax, 0) == 0);
  CHECK(CheckedMultiply(kMin, 1) == kMin);
  CHECK(CheckedAdd(kMax, kMin) == -1);
  CHECK(CheckedAdd(kMax - 1, 1) == kMax);
}

TEST_CASE("Products and sums that do not fit are none") {
  CHECK_FALSE(CheckedMultiply(kMax, 2).has_value());
  CHECK_FALSE(CheckedMultiply(kMin, -1).has_value());
  CHECK_FALSE(CheckedMultiply(int64_t{1} << 32, int64_t{1} << 31).has_value());
  CHECK_FALSE(CheckedAdd(kMax, 1).has_value());
  CHECK_FALSE(CheckedAdd(kMin, -1).has_value());
}

TEST_CASE("Sums and products of bytes are exact or none") {
  constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
  CHECK(CheckedMultiplyBytes(kMost / 5, 5) == kMost);
  CHECK(CheckedAddBytes(kMost - 1, 1) == kMost);
  CHECK_FALSE(CheckedMultiplyBytes(uint64_t{1} << 62, 4).has_value());
  CHECK_FALSE(CheckedAddBytes(kMost, 1).has_value());
}

TEST_CASE("A difference stays at the end that it would pass") {
  CHECK(SaturatingSubtract(5, 7) == -2);
  CHECK(SaturatingSubtract(kMax, -1) == kMax);
  CHECK(SaturatingSubtract(kMin, 1) == kMin);
  CHECK(SaturatingSubtract(0, kMin) == kMax);
}

}  // namespace
}  // namespace lockstep
