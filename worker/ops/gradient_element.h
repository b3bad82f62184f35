// Ops on gradients, for one element: the same on every device.
#pragma once

#include "common/base/host_device.h"

namespace lockstep::worker {

// The value of a moving average after one more update. `update` is what another value, `old`,
// became by it.
LOCKSTEP_HOST_DEVICE inline float AfterUpdate(float value, float update, float old,
                                              float momentum) {
  return momentum * value + (update - momentum * old);
}

}  // namespace lockstep::worker
