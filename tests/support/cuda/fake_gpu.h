// A CudaDevice over the fake driver, with a cuBLASLt and a cuDNN that the host imitates.
#pragma once

#include <cstdint>
#include <memory>

#include "tests/support/cuda/fake_driver.h"
#include "worker/device/cuda/cuda_device.h"

namespace lockstep::test {

// Any thread. Keeps its driver. GPUs that exist at a time are of one driver, whose seed is the
// first one's; it has all of those up to `ordinal`.
std::shared_ptr<worker::cuda::CudaDevice> MakeFakeGpu(uint64_t seed, int ordinal = 0);

}  // namespace lockstep::test
