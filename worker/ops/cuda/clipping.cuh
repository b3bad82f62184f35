// Gradient clipping by the formulas of common/optimizer/clipping_element.h. Sums of squares are
// doubles, added in an order that depends on the number of blocks alone.
#pragma once

#include "worker/ops/cuda/kernel.cuh"

// x[i] = x[i] in [-limit, limit].
LOCKSTEP_KERNEL void lockstep_clip_value(float* x, float limit, int64_t n);

// Blocks of kRowThreads threads. parts[b] = the sum of the squares of block b's share of x.
LOCKSTEP_KERNEL void lockstep_square_parts(double* parts, const float* x, int64_t n);

// One such block. *sum = the sum of `count` parts.
LOCKSTEP_KERNEL void lockstep_sum_parts(double* sum, const double* parts, int64_t count);

// One thread each, of one tensor's sum of squares and of those of all tensors in their order.
LOCKSTEP_KERNEL void lockstep_norm_divisor(float* divisor, const double* sum, float limit);
LOCKSTEP_KERNEL void lockstep_global_norm_scale(float* scale, const double* sums, int64_t tensors,
                                                float limit);

// x[i] = x[i] * limit / *divisor.
LOCKSTEP_KERNEL void lockstep_clip_norm(float* x, const float* divisor, float limit, int64_t n);
// x[i] = x[i] * *scale.
LOCKSTEP_KERNEL void lockstep_clip_global_norm(float* x, const float* scale, int64_t n);
