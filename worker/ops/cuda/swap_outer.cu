#include "worker/ops/cuda/column_loop.cuh"
#include "worker/ops/cuda/swap_outer.cuh"

using lockstep::BFloat16;
using lockstep::worker::cuda::ForEachInColumns;
using lockstep::worker::cuda::Wide;

namespace {

template <typename To, typename From>
LOCKSTEP_DEVICE void SwapOuter(To* to, const From* from, int64_t outer, int64_t inner,
                               int64_t width) {
  ForEachInColumns(outer * inner, width, [=](int64_t i, int64_t row, int64_t column) {
    const int64_t of_inner = row / outer;
    const int64_t of_outer = row - of_inner * outer;
    to[i] = static_cast<To>(Wide(from[(of_outer * inner + of_inner) * width + column]));
  });
}

}  // namespace

LOCKSTEP_KERNEL void lockstep_swap_outer(float* to, const float* from, int64_t outer, int64_t inner,
                                         int64_t width) {
  SwapOuter(to, from, outer, inner, width);
}
LOCKSTEP_KERNEL void lockstep_swap_outer_to_bf16(BFloat16* to, const float* from, int64_t outer,
                                                 int64_t inner, int64_t width) {
  SwapOuter(to, from, outer, inner, width);
}
LOCKSTEP_KERNEL void lockstep_swap_outer_from_bf16(float* to, const BFloat16* from, int64_t outer,
                                                   int64_t inner, int64_t width) {
  SwapOuter(to, from, outer, inner, width);
}
