// Maximum or mean over a moving window, channel by channel. Padding takes no part: not in the
// maximum, not in the count of the mean. The gradient of a maximum goes to its first element.
#pragma once

#include "absl/status/status.h"
#include "worker/ops/op.h"
#include "worker/ops/window.h"

namespace lockstep::worker {

enum class PoolKind { kMax, kAverage };

struct PoolOptions : OpOptions {
  static constexpr absl::string_view kKind = "pool";
  PoolKind kind = PoolKind::kMax;
  ImageShape input;
  ImageShape output;
  Window window;
};

// UNIMPLEMENTED, with the remedy: an image, its padding and a window or stride are so long that
// places along an axis cannot be counted in 32 bits, as the kernels of a GPU and oneDNN do.
absl::Status CheckPoolAxes(const PoolOptions& options);

}  // namespace lockstep::worker
