#include "worker/ops/cuda/element_loop.cuh"
#include "worker/ops/cuda/mean.cuh"

using lockstep::worker::cuda::MapElements;

LOCKSTEP_KERNEL void lockstep_scale(float* to, const float* from, float scale, int64_t n) {
  MapElements(
      to, n, [=](float value) { return value * scale; }, from);
}
