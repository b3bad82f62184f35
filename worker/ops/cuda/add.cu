#include "worker/ops/cuda/add.cuh"
#include "worker/ops/cuda/element_loop.cuh"

using lockstep::BFloat16;
using lockstep::worker::cuda::MapElements;

namespace {

template <typename T>
LOCKSTEP_DEVICE void MapAdd(T* sum, const T* a, const T* b, int64_t n) {
  MapElements(
      sum, n, [](float of_a, float of_b) { return of_a + of_b; }, a, b);
}

}  // namespace

LOCKSTEP_KERNEL void lockstep_add(float* sum, const float* a, const float* b, int64_t n) {
  MapAdd(sum, a, b, n);
}
LOCKSTEP_KERNEL void lockstep_add_bf16(BFloat16* sum, const BFloat16* a, const BFloat16* b,
                                       int64_t n) {
  MapAdd(sum, a, b, n);
}
