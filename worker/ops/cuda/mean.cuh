#pragma once

#include "worker/ops/cuda/kernel.cuh"

// to[i] = from[i] * scale of n elements. `to` may be `from`.
LOCKSTEP_KERNEL void lockstep_scale(float* to, const float* from, float scale, int64_t n);
