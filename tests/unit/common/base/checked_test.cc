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

}  // namespace
}  // namespace lockstep
