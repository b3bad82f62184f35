#pragma once

#include "common/tensor/bfloat16.h"
#include "worker/ops/cuda/kernel.cuh"

// [outer, inner, width] to [inner, outer, width], also from one type to another. The memory does
// not overlap.
LOCKSTEP_KERNEL void lockstep_swap_outer(float* to, const float* from, int64_t outer, int64_t inner,
                                         int64_t width);
LOCKSTEP_KERNEL void lockstep_swap_outer_to_bf16(lockstep::BFloat16* to, const float* from,
                                                 int64_t outer, int64_t inner, int64_t width);
LOCKSTEP_KERNEL void lockstep_swap_outer_from_bf16(float* to, const lockstep::BFloat16* from,
                                                   int64_t outer, int64_t inner, int64_t width);
