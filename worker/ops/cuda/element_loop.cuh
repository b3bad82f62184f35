// The loop of kernels that compute each element alone. For .cu files.
#pragma once

#include "worker/ops/cuda/kernel.cuh"

namespace lockstep::worker::cuda {

// Calls body(i) for this thread's part of [0, n), whatever the number of blocks and threads.
// Neighbouring threads have neighbouring elements.
template <typename Body>
LOCKSTEP_DEVICE inline void ForEachElement(int64_t n, const Body& body) {
  const int64_t threads = int64_t{gridDim.x} * blockDim.x;
  LOCKSTEP_NO_UNROLL
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += threads) body(i);
}

}  // namespace lockstep::worker::cuda
