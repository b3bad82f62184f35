#include "common/tensor/shape.h"

#include <catch2/catch.hpp>
#include <limits>
#include <string>
#include <vector>

namespace lockstep {
namespace {

using Catch::Matchers::Contains;

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

std::string ErrorOf(absl::Span<const int64_t> dims) {
  const absl::StatusOr<Shape> shape = Shape::Create(dims);
  REQUIRE_FALSE(shape.ok());
  CHECK(shape.status().code() == absl::StatusCode::kInvalidArgument);
  return std::string(shape.status().message());
}

TEST_CASE("A shape counts its elements") {
  CHECK(Shape().rank() == 0);
  CHECK(Shape().num_elements() == 1);
  CHECK(Shape({3, 2}).num_elements() == 6);
  CHECK(Shape({3, 0, 2}).num_elements() == 0);
  CHECK(Shape({3, 2}).dim(1) == 2);
  CHECK(Shape({3, 2}).ToString() == "[3,2]");
  CHECK(Shape().ToString() == "[]");
}

TEST_CASE("Shapes are equal when every extent is") {
  CHECK(Shape({2, 3}) == Shape({2, 3}));
  CHECK_FALSE(Shape({2, 3}) == Shape({3, 2}));
  CHECK_FALSE(Shape({1}) == Shape());
  CHECK_FALSE(Shape({0, 1}) == Shape({1, 0}));
}

TEST_CASE("A negative extent, a high rank and too many elements are refused") {
  CHECK_THAT(ErrorOf({2, -1}), Contains("shape [2,-1]: extent -1 is negative"));
  CHECK_THAT(ErrorOf({1, 1, 1, 1, 1, 1, 1, 1, 1}), Contains("rank 9 is over the limit of 8"));
  CHECK_THAT(ErrorOf({kMax, 2}), Contains("more elements than can be counted"));
  CHECK_THAT(ErrorOf({int64_t{1} << 31, int64_t{1} << 31, 4}), Contains("more elements"));
  // The bytes must be countable too, and what a zero hides.
  CHECK_THAT(ErrorOf({kMax / 4}), Contains("more elements"));
  CHECK_THAT(ErrorOf({0, kMax, kMax}), Contains("more elements"));
}

TEST_CASE("An error names only so many extents as a shape may have") {
  const std::string error = ErrorOf(std::vector<int64_t>(1'000'000, 7));
  CHECK(error == "shape [7,7,7,7,7,7,7,7,...]: rank 1000000 is over the limit of 8");
}

TEST_CASE("The largest shapes that can be counted are accepted") {
  CHECK(Shape::Create({kMax / 8}).ok());
  CHECK(Shape::Create({1, 1, 1, 1, 1, 1, 1, 1}).ok());
}

}  // namespace
}  // namespace lockstep
