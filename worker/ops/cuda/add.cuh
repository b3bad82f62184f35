#pragma once

#include "common/tensor/bfloat16.h"
#include "worker/ops/cuda/kernel.cuh"

// sum[i] = a[i] + b[i] of n elements. `sum` may be `a` or `b`.
LOCKSTEP_KERNEL void lockstep_add(float* sum, const float* a, const float* b, int64_t n);
LOCKSTEP_KERNEL void lockstep_add_bf16(lockstep::BFloat16* sum, const lockstep::BFloat16* a,
                                       const lockstep::BFloat16* b, int64_t n);
