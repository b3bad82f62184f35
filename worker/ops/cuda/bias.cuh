#pragma once

#include "worker/ops/cuda/kernel.cuh"

// y[r][c] += bias[c], and cut off at 0 where `relu`; y: [rows, columns]. `bias` null: none.
LOCKSTEP_KERNEL void lockstep_bias(float* y, const float* bias, bool relu, int64_t rows,
                                   int64_t columns);
