// Plans the positions of a convolution's or a pool's window along one dimension of an image.
#pragma once

#include <cstdint>

#include "proto/model.pb.h"

namespace lockstep {

struct WindowPlan {
  int64_t output = 0;      // number of positions; 0 when the window does not fit (VALID only)
  int64_t pad_before = 0;  // zeros (or nothing, for a pool) ahead of the first pixel
  int64_t pad_after = 0;   // the odd one of SAME is here
};

// `input`, `window` and `stride` are at least 1 and at most 2^31 - 1. With SAME no window ever lies
// wholly in the padding.
WindowPlan PlanWindow(int64_t input, int64_t window, int64_t stride, Padding padding);

}  // namespace lockstep
