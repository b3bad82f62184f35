// What sums and means are in each element type.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "tests/unit/ps/accumulator/dense_fixture.h"

namespace lockstep::reference {
namespace {

using test::DenseFixture;
using test::Of;

TEST_CASE("half precision is summed and divided in half precision, as TensorFlow does") {
  // Seven gradients ((7i + 13k + 3ik) mod 41 - 20) / 64 * 1.1 * 100, given to
  // tf.compat.v1.ConditionalAccumulator of TensorFlow 2.21.0: what it returned.
  const std::map<DType, std::vector<float>> expected = {
      {DType::kFloat16,
       {0x1.3a4p+1f, -0x1.f6cp-3f, -0x1.794p+1f, -0x1.698p+2f, 0x1.b8p+0f, 0x1.22cp+3f,
        -0x1.d78p+1f, -0x1.988p+2f, 0x1.f6cp-1f}},
      {DType::kFloat32,
       {0x1.3a4926p+1f, -0x1.f6db6ep-3f, -0x1.792496p+1f, -0x1.696db6p+2f, 0x1.b80002p+0f,
        0x1.22b6dcp+3f, -0x1.d76db6p+1f, -0x1.98924ap+2f, 0x1.f6db76p-1f}}};
  const DType dtype = GENERATE(DType::kFloat16, DType::kFloat32);
  const Shape shape({9});
  DenseFixture f(Reduction::kMean, dtype, PartialShape(shape));
  for (int k = 0; k < 7; ++k) {
    std::vector<float> gradient;
    for (int i = 0; i < 9; ++i) {
      const float base = static_cast<float>((i * 7 + k * 13 + i * k * 3) % 41 - 20) / 64.0f;
      gradient.push_back(base * 1.1f * 100.0f);
    }
    REQUIRE(f.Apply(Of(shape, gradient, dtype)).ok());
  }
  CHECK(f.Take(7) == expected.at(dtype));
}

TEST_CASE("sums of half precision and bfloat16 round at every addition") {
  // 2048 + 1 is a tie in half precision, 256 + 1 in bfloat16: to even, so nothing is added.
  DenseFixture half(Reduction::kSum, DType::kFloat16);
  half.Apply(2048);
  for (int i = 0; i < 100; ++i) half.Apply(1);
  CHECK(half.Take(1)[0] == 2048);
  DenseFixture brain(Reduction::kSum, DType::kBFloat16);
  brain.Apply(256);
  for (int i = 0; i < 100; ++i) brain.Apply(1);
  CHECK(brain.Take(1)[0] == 256);
  // Beyond the largest half there is infinity.
  DenseFixture large(Reduction::kMean, DType::kFloat16);
  large.Apply(60000);
  large.Apply(60000);
  CHECK(large.Take(2)[0] == std::numeric_limits<float>::infinity());
}

TEST_CASE("a bfloat16 sum keeps NaN a NaN and rounds to nearest even") {
  DenseFixture f(Reduction::kSum, DType::kBFloat16);
  f.Apply(std::numeric_limits<float>::quiet_NaN());
  f.Apply(1);
  CHECK(std::isnan(f.Take(1)[0]));
  f.Apply(257 - 1, 1);  // 256 + 3 = 259 lies between 258 and 260: a tie, to even
  f.Apply(3, 1);
  CHECK(f.Take(1)[0] == 260);
}

}  // namespace
}  // namespace lockstep::reference
