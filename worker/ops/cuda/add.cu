#include "worker/ops/cuda/add.cuh"
#include "worker/ops/cuda/element_loop.cuh"

using lockstep::worker::cuda::MapElements;

LOCKSTEP_KERNEL void lockstep_add(float* sum, const float* a, const float* b, int64_t n) {
  MapElements(
      sum, n, [](float of_a, float of_b) { return of_a + of_b; }, a, b);
}
