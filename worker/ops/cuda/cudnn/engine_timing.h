// Measures which cuDNN engine computes a convolution fastest on this GPU.
#pragma once

#include <cstddef>
#include <span>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "worker/device/cuda/cuda_device.h"
#include "worker/ops/cuda/cudnn/convolution.h"

namespace lockstep::worker::cuda {

// Runs each of `candidates`, at least one, several times on temporary memory. Returns the index of
// the fastest; of equal ones, the first. The candidates are one pass of a convolution of `options`
// by several engines. A candidate that cuDNN fails to run is not chosen. Returns 0 if none runs, or
// if there is no memory to try them. Afterwards their handle has no stream. Errors are those of the
// device.
absl::StatusOr<size_t> FindFastest(CudaDevice* device, const Conv2DOptions& options,
                                   std::span<Convolution> candidates, const Clock* clock);

}  // namespace lockstep::worker::cuda
