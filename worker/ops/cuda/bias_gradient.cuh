#pragma once

#include "worker/ops/cuda/kernel.cuh"

// bias_gradient[c] = the sum of column c of `gradient`, [rows, columns], from the first row to the
// last. One thread per column.
LOCKSTEP_KERNEL void lockstep_bias_gradient(float* bias_gradient, const float* gradient,
                                            int64_t rows, int64_t columns);
