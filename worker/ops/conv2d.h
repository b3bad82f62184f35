// Convolution (cross-correlation, as everywhere in this field). Variables: kernel [height, width,
// channels, filters], bias [filters].
#pragma once

#include "worker/ops/op.h"
#include "worker/ops/window.h"

namespace lockstep::worker {

struct Conv2DOptions : OpOptions {
  static constexpr absl::string_view kKind = "conv2d";
  ImageShape input;
  ImageShape output;  // its channels are the filters
  Window window;
  bool bias = true;
  bool relu = false;  // the result is cut off at 0

  // The shape of one filter.
  ImageShape filter() const { return {window.extent[0], window.extent[1], input.channels}; }
};

}  // namespace lockstep::worker
