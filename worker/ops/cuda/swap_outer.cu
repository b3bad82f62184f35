#include "worker/ops/cuda/column_loop.cuh"
#include "worker/ops/cuda/swap_outer.cuh"

using lockstep::worker::cuda::ForEachInColumns;

LOCKSTEP_KERNEL void lockstep_swap_outer(float* to, const float* from, int64_t outer, int64_t inner,
                                         int64_t width) {
  ForEachInColumns(outer * inner, width, [=](int64_t i, int64_t row, int64_t column) {
    const int64_t of_inner = row / outer;
    const int64_t of_outer = row - of_inner * outer;
    to[i] = from[(of_outer * inner + of_inner) * width + column];
  });
}
