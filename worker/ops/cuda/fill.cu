#include "worker/ops/cuda/element_loop.cuh"
#include "worker/ops/cuda/fill.cuh"

using lockstep::worker::cuda::ForEachElement;

LOCKSTEP_KERNEL void lockstep_fill(float* to, float value, int64_t n) {
  ForEachElement(n, [=](int64_t i) { to[i] = value; });
}
