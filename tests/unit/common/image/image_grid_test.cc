#include "common/image/image_grid.h"

#include <catch2/catch.hpp>
#include <limits>
#include <vector>

namespace lockstep {
namespace {

constexpr int64_t kGap = 2;

const uint8_t* PixelOf(const Image& image, int64_t y, int64_t x) {
  return &image.pixels[(y * image.width + x) * image.channels];
}

TEST_CASE("tiles fill a grid about as wide as high, line by line") {
  const TileShape tile{.height = 32, .width = 40};
  std::vector<float> values;
  for (int t = 0; t < 5; ++t) values.insert(values.end(), tile.num_elements(), t / 5.0f);
  const Image grid = MakeGrid(values, tile);
  CHECK(grid.width == 3 * (40 + kGap) + kGap);
  CHECK(grid.height == 2 * (32 + kGap) + kGap);
  CHECK(grid.channels == 1);
  for (int t = 0; t < 5; ++t) {
    CAPTURE(t);
    const int64_t top = kGap + t / 3 * (32 + kGap), left = kGap + t % 3 * (40 + kGap);
    CHECK(*PixelOf(grid, top, left) == 51 * t);
    CHECK(*PixelOf(grid, top + 31, left + 39) == 51 * t);
    CHECK(*PixelOf(grid, top - 1, left) == *PixelOf(grid, 0, 0));
    CHECK(*PixelOf(grid, top, left + 40) == *PixelOf(grid, 0, 0));
  }
  // The place of a sixth.
  CHECK(*PixelOf(grid, 2 * kGap + 32, 3 * kGap + 80) == *PixelOf(grid, 0, 0));
}

TEST_CASE("small tiles are enlarged, each pixel to a square") {
  const Image grid = MakeGrid({0, 0.5f, 1, 0.25f, 0.75f, 0.1f}, {.height = 3, .width = 2});
  CHECK(grid.height == 3 * 11 + 2 * kGap);
  CHECK(grid.width == 2 * 11 + 2 * kGap);
  const uint8_t expected[] = {0, 128, 255, 64, 191, 26};
  for (int64_t y = 0; y < 33; ++y) {
    for (int64_t x = 0; x < 22; ++x) {
      REQUIRE(*PixelOf(grid, kGap + y, kGap + x) == expected[y / 11 * 2 + x / 11]);
    }
  }
}

TEST_CASE("what is outside of black and white is cut, and what is no number is black") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Image grid = MakeGrid({-3, 7, nan}, {.height = 1, .width = 3});
  CHECK(*PixelOf(grid, kGap, kGap) == 0);
  CHECK(*PixelOf(grid, kGap, kGap + 32) == 255);
  CHECK(*PixelOf(grid, kGap, kGap + 64) == 0);
}

TEST_CASE("colours stay side by side") {
  const Image grid = MakeGrid({1, 0, 0.2f}, {.height = 1, .width = 1, .channels = 3});
  REQUIRE(grid.channels == 3);
  const uint8_t* const pixel = PixelOf(grid, kGap + 31, kGap + 31);
  CHECK(std::vector<int>(pixel, pixel + 3) == std::vector<int>{255, 0, 51});
}

}  // namespace
}  // namespace lockstep
