// An image in memory.
#pragma once

#include <cstdint>
#include <vector>

namespace lockstep {

struct Image {
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 1;         // 1: grey; 3: red, green, blue
  std::vector<uint8_t> pixels;  // [height, width, channels], row-major
};

}  // namespace lockstep
