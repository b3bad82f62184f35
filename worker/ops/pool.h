// Maximum or mean over a moving window, channel by channel. Padding takes no part: not in the
// maximum, not in the count of the mean. The gradient of a maximum goes to its first element.
#pragma once

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

}  // namespace lockstep::worker
