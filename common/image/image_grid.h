// Many small images as one.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "common/image/image.h"

namespace lockstep {

struct TileShape {
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 1;  // 1 or 3

  int64_t num_elements() const { return height * width * channels; }
};

// A grid, about as wide as high, filled line by line. `values` are those of all tiles, [tile,
// height, width, channels]: 0 is black and 1 white, what is outside is cut. Tiles of fewer than 32
// lines are enlarged by a whole number. At least one tile (CHECK).
Image MakeGrid(absl::Span<const float> values, const TileShape& tile);

}  // namespace lockstep
