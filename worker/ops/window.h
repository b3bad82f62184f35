// A window that moves over an image: convolutions and pools.
#pragma once

#include <array>
#include <cstdint>

namespace lockstep::worker {

struct ImageShape {
  int64_t height = 1;
  int64_t width = 1;
  int64_t channels = 1;
  int64_t num_elements() const { return height * width * channels; }
};

// Height first, then width.
struct Window {
  std::array<int64_t, 2> extent = {1, 1};
  std::array<int64_t, 2> stride = {1, 1};
  std::array<int64_t, 2> pad_before = {0, 0};
  std::array<int64_t, 2> pad_after = {0, 0};
};

}  // namespace lockstep::worker
