#include "common/image/image_grid.h"

#include <algorithm>
#include <cmath>

#include "common/base/check.h"

namespace lockstep {
namespace {

constexpr int64_t kFewestLines = 32;
constexpr int64_t kGap = 2;  // pixels between tiles, and around them
constexpr uint8_t kGapColor = 96;

// Black where it is not a number.
uint8_t ToByte(float value) {
  return value > 0 ? static_cast<uint8_t>(std::lround(std::min(value, 1.0f) * 255)) : 0;
}

}  // namespace

Image MakeGrid(absl::Span<const float> values, const TileShape& tile) {
  LOCKSTEP_CHECK(tile.num_elements() > 0 && !values.empty());
  LOCKSTEP_CHECK(values.size() % tile.num_elements() == 0);
  const int64_t tiles = static_cast<int64_t>(values.size()) / tile.num_elements();
  const int64_t columns = static_cast<int64_t>(std::ceil(std::sqrt(static_cast<double>(tiles))));
  const int64_t rows = (tiles + columns - 1) / columns;
  const int64_t zoom = (std::max(kFewestLines, tile.height) + tile.height - 1) / tile.height;
  const int64_t pitch_y = tile.height * zoom + kGap;
  const int64_t pitch_x = tile.width * zoom + kGap;

  Image grid{.height = rows * pitch_y + kGap,
             .width = columns * pitch_x + kGap,
             .channels = tile.channels};
  grid.pixels.assign(grid.height * grid.width * grid.channels, kGapColor);
  for (int64_t t = 0; t < tiles; ++t) {
    const absl::Span<const float> from =
        values.subspan(t * tile.num_elements(), tile.num_elements());
    const int64_t top = kGap + t / columns * pitch_y;
    const int64_t left = kGap + t % columns * pitch_x;
    for (int64_t y = 0; y < tile.height * zoom; ++y) {
      uint8_t* to = grid.pixels.data() + ((top + y) * grid.width + left) * grid.channels;
      for (int64_t x = 0; x < tile.width * zoom; ++x) {
        const float* const pixel = &from[(y / zoom * tile.width + x / zoom) * tile.channels];
        to = std::transform(pixel, pixel + tile.channels, to, ToByte);
      }
    }
  }
  return grid;
}

}  // namespace lockstep
