#include "worker/ops/cuda/cast.cuh"
#include "worker/ops/cuda/element_loop.cuh"

using lockstep::BFloat16;
using lockstep::worker::cuda::MapElements;

LOCKSTEP_KERNEL void lockstep_to_bf16(BFloat16* to, const float* from, int64_t n) {
  MapElements(
      to, n, [](float value) { return value; }, from);
}

LOCKSTEP_KERNEL void lockstep_from_bf16(float* to, const BFloat16* from, int64_t n) {
  MapElements(
      to, n, [](float value) { return value; }, from);
}
