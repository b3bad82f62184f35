#include "common/model/window.h"

#include <catch2/catch.hpp>
#include <limits>

namespace lockstep {
namespace {

TEST_CASE("SAME splits its padding with the odd one at the end") {
  const WindowPlan plan = PlanWindow(5, 4, 1, SAME);
  CHECK(plan.output == 5);
  CHECK(plan.pad_before == 1);
  CHECK(plan.pad_after == 2);
}

TEST_CASE("A stride wider than the window needs no padding") {
  const WindowPlan plan = PlanWindow(7, 1, 3, SAME);
  CHECK(plan.output == 3);
  CHECK(plan.pad_before + plan.pad_after == 0);
}

TEST_CASE("Every window touches the input and together they fit the padded input") {
  for (int64_t input = 1; input <= 9; ++input) {
    for (int64_t window = 1; window <= 11; ++window) {
      for (int64_t stride = 1; stride <= 10; ++stride) {
        CAPTURE(input, window, stride);
        const WindowPlan same = PlanWindow(input, window, stride, SAME);
        int64_t positions = 0;
        for (int64_t begin = -same.pad_before; begin + window <= input + same.pad_after;
             begin += stride) {
          CHECK(begin < input);
          CHECK(begin + window > 0);
          ++positions;
        }
        CHECK(positions == same.output);
        CHECK(same.output == (input + stride - 1) / stride);
        CHECK((same.pad_after == same.pad_before || same.pad_after == same.pad_before + 1));

        int64_t inside = 0;
        for (int64_t begin = 0; begin + window <= input; begin += stride) ++inside;
        CHECK(PlanWindow(input, window, stride, VALID).output == inside);
      }
    }
  }
}

TEST_CASE("The largest extents do not overflow") {
  constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
  CHECK(PlanWindow(kMax, kMax, kMax, SAME).output == 1);
  CHECK(PlanWindow(kMax, kMax, 1, SAME).output == kMax);
  CHECK(PlanWindow(kMax, kMax, kMax, VALID).output == 1);
}

}  // namespace
}  // namespace lockstep
