// Which of cuDNN's engines computes a convolution in the least time on the GPU at hand.
#pragma once

#include <cstddef>
#include <span>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "worker/device/cuda/cuda_device.h"
#include "worker/ops/cuda/cudnn/convolution.h"

namespace lockstep::worker::cuda {

// Runs each of `candidates`, at least one, some times on memory that is freed again, and returns
// the place of the fastest; of equal ones that of the first. They are the pass of a convolution of
// `options` by several engines. One that cuDNN fails to run is not chosen. Returns 0 where none
// runs, or where there is no memory to try them in. Their handle has no stream then. Errors are
// those of the device.
absl::StatusOr<size_t> FindFastest(CudaDevice* device, const Conv2DOptions& options,
                                   std::span<Convolution> candidates, const Clock* clock);

}  // namespace lockstep::worker::cuda
