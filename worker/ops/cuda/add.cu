#include "worker/ops/cuda/add.cuh"
#include "worker/ops/cuda/element_loop.cuh"

using lockstep::worker::cuda::ForEachElement;

LOCKSTEP_KERNEL void lockstep_add(float* sum, const float* a, const float* b, int64_t n) {
  ForEachElement(n, [=](int64_t i) { sum[i] = a[i] + b[i]; });
}
