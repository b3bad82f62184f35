// The layouts and attributes that several ops describe their primitives with.
#pragma once

#include <array>

#include "worker/ops/conv2d.h"
#include "worker/ops/cpu/onednn.h"
#include "worker/ops/window.h"

namespace lockstep::worker::cpu {

inline Dims Pair(const std::array<int64_t, 2>& values) { return {values[0], values[1]}; }

inline Desc ImageDesc(int64_t batch, const ImageShape& image) {
  return FloatDesc({batch, image.channels, image.height, image.width}, Tag::nhwc);
}

// In oneDNN's order, whatever the order in memory.
inline Dims KernelDims(const Conv2DOptions& options) {
  return {options.output.channels, options.input.channels, options.window.extent[0],
          options.window.extent[1]};
}

}  // namespace lockstep::worker::cpu
