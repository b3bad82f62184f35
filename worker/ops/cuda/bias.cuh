#pragma once

#include "common/tensor/bfloat16.h"
#include "worker/ops/cuda/kernel.cuh"

// y[r][c] += bias[c], and cut off at 0 where `relu`; y: [rows, columns]. `bias` null: none.
LOCKSTEP_KERNEL void lockstep_bias(float* y, const float* bias, bool relu, int64_t rows,
                                   int64_t columns);
LOCKSTEP_KERNEL void lockstep_bias_bf16(lockstep::BFloat16* y, const float* bias, bool relu,
                                        int64_t rows, int64_t columns);
