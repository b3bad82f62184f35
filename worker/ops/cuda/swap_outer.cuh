#pragma once

#include "worker/ops/cuda/kernel.cuh"

// [outer, inner, width] to [inner, outer, width]. The memory does not overlap.
LOCKSTEP_KERNEL void lockstep_swap_outer(float* to, const float* from, int64_t outer, int64_t inner,
                                         int64_t width);
