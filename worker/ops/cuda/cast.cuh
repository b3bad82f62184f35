// Between float32 and bfloat16, rounded to nearest.
#pragma once

#include "common/tensor/bfloat16.h"
#include "worker/ops/cuda/kernel.cuh"

// to[i] = from[i] of n elements. The memory does not overlap.
LOCKSTEP_KERNEL void lockstep_to_bf16(lockstep::BFloat16* to, const float* from, int64_t n);
LOCKSTEP_KERNEL void lockstep_from_bf16(float* to, const lockstep::BFloat16* from, int64_t n);
