// Tensors of the host from which a device copies directly.
#pragma once

#include "common/tensor/tensor_maker.h"
#include "worker/device/device.h"

namespace lockstep::worker {

// Not initialised. From the heap where the device is the host or can pin no memory. `device`
// outlives it.
Tensor PinnedTensor(Device* device, DType dtype, const Shape& shape);

// Makes them. Copies of one maker say in the log, once, that memory could not be pinned, and why.
TensorMaker PinnedTensors(Device* device);

}  // namespace lockstep::worker
