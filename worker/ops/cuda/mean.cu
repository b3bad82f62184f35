#include "worker/ops/cuda/element_loop.cuh"
#include "worker/ops/cuda/mean.cuh"

using lockstep::worker::cuda::ForEachElement;

LOCKSTEP_KERNEL void lockstep_scale(float* to, const float* from, float scale, int64_t n) {
  ForEachElement(n, [=](int64_t i) { to[i] = from[i] * scale; });
}
