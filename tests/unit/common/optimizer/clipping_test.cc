#include "common/optimizer/clipping.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <vector>

namespace lockstep {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

template <typename T>
MutableTensorView ViewOf(std::vector<T>& elements) {
  return {DTypeOf<T>(), Shape({static_cast<int64_t>(elements.size())}), elements.data()};
}

TEST_CASE("clipping by value holds every element between the bounds") {
  std::vector<float> x = {-5, -1, -.5f, 0, .5f, 1, 5, kInf, -kInf};
  ClipByValue(-1, .5f, ViewOf(x));
  CHECK(x == std::vector<float>{-1, -1, -.5f, 0, .5f, .5f, .5f, .5f, -1});
  std::vector<double> y = {-5, 3};
  ClipByValue(-1, 1, ViewOf(y));
  CHECK(y == std::vector<double>{-1, 1});
  std::vector<float> none = {kNan};
  ClipByValue(-1, 1, ViewOf(none));
  CHECK(std::isnan(none[0]));
}

TEST_CASE("clipping by norm scales a tensor that is too long, and no other") {
  std::vector<float> x = {3, 4};
  ClipByNorm(2.5f, ViewOf(x));
  CHECK(x == std::vector<float>{1.5f, 2});
  ClipByNorm(8, ViewOf(x));
  CHECK(x == std::vector<float>{1.5f, 2});
  std::vector<float> zero = {0, 0};
  ClipByNorm(1, ViewOf(zero));
  CHECK(zero == std::vector<float>{0, 0});
  std::vector<float> empty;
  ClipByNorm(1, ViewOf(empty));
  std::vector<double> y = {-6, 8};
  ClipByNorm(5, ViewOf(y));
  CHECK(y == std::vector<double>{-3, 4});
}

TEST_CASE("clipping by the global norm scales all tensors by the same factor") {
  std::vector<float> x0 = {-2, 0, 0, 4, 0, 0};
  std::vector<float> x1 = {1, -2};
  const MutableTensorView both[] = {ViewOf(x0), ViewOf(x1)};
  CHECK(ClipByGlobalNorm(6, both) == 5);
  CHECK(x0 == std::vector<float>{-2, 0, 0, 4, 0, 0});
  CHECK(x1 == std::vector<float>{1, -2});
  CHECK(ClipByGlobalNorm(4, both) == 5);
  CHECK(x0[0] == Approx(-1.6f));
  CHECK(x0[3] == Approx(3.2f));
  CHECK(x1[1] == Approx(-1.6f));
  CHECK(ClipByGlobalNorm(4, both) == Approx(4));
}

TEST_CASE("gradients of zero are left alone") {
  std::vector<float> zero = {0, 0, 0};
  const MutableTensorView all[] = {ViewOf(zero)};
  CHECK(ClipByGlobalNorm(.3f, all) == 0);
  CHECK(zero == std::vector<float>{0, 0, 0});
  CHECK(ClipByGlobalNorm(1, {}) == 0);
}

TEST_CASE("a norm that is not finite shows in every gradient") {
  for (const float bad : {kInf, -kInf, kNan, std::numeric_limits<float>::max()}) {
    CAPTURE(bad);
    std::vector<float> x0 = {bad, 1};
    std::vector<float> x1 = {2};
    const MutableTensorView both[] = {ViewOf(x0), ViewOf(x1)};
    CHECK_FALSE(std::isfinite(ClipByGlobalNorm(1, both)));
    for (const float x : {x0[0], x0[1], x1[0]}) CHECK(std::isnan(x));
  }
  std::vector<float> x = {kNan, 1};
  ClipByNorm(1, ViewOf(x));
  CHECK(std::isnan(x[1]));
}

TEST_CASE("the norm of a million elements does not suffer from the order of its sum") {
  std::vector<float> x(1'000'003, .1f);
  const MutableTensorView views[] = {ViewOf(x)};
  CHECK(ClipByGlobalNorm(1, views) == Approx(.1f * std::sqrt(1'000'003.0)).epsilon(1e-6));
}

TEST_CASE("a rule clips each tensor, or all tensors together") {
  const auto clipped = [](const ClippingRule& rule) {
    std::vector<float> x0 = {3, 4};
    std::vector<float> x1 = {12, 0};
    const MutableTensorView both[] = {ViewOf(x0), ViewOf(x1)};
    Clip(rule, both);
    return std::vector<float>{x0[0], x0[1], x1[0], x1[1]};
  };
  CHECK(clipped({}) == std::vector<float>{3, 4, 12, 0});
  CHECK(clipped({ClippingKind::kValue, 3.5f}) == std::vector<float>{3, 3.5f, 3.5f, 0});
  CHECK(clipped({ClippingKind::kNorm, 2.5f}) == std::vector<float>{1.5f, 2, 2.5f, 0});
  CHECK(clipped({ClippingKind::kGlobalNorm, 6.5f}) == std::vector<float>{1.5f, 2, 6, 0});
}

TEST_CASE("one tensor of doubles makes the norm one of doubles") {
  std::vector<float> x = {1};
  std::vector<double> y = {1e-9};
  const MutableTensorView both[] = {ViewOf(x), ViewOf(y)};
  CHECK(ClipByGlobalNorm(.5f, both) == std::sqrt(1 + 1e-18));
  CHECK(x[0] == .5f);
  CHECK(y[0] == Approx(.5e-9));
}

}  // namespace
}  // namespace lockstep
