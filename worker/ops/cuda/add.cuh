#pragma once

#include "worker/ops/cuda/kernel.cuh"

// sum[i] = a[i] + b[i] of n elements. `sum` may be `a` or `b`.
LOCKSTEP_KERNEL void lockstep_add(float* sum, const float* a, const float* b, int64_t n);
