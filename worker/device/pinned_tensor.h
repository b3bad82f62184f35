// Tensors of the host from which a device copies directly.
#pragma once

#include "common/tensor/tensor_maker.h"
#include "worker/device/device.h"

namespace lockstep::worker {

// Makes them, not initialised: from the heap where the device is the host or can pin no memory.
// Copies of one maker say in the log, once, that memory could not be pinned, and why. `device`
// outlives maker and tensors.
TensorMaker PinnedTensors(Device* device);

}  // namespace lockstep::worker
