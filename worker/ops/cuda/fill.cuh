#pragma once

#include "worker/ops/cuda/kernel.cuh"

// to[i] = value of n elements.
LOCKSTEP_KERNEL void lockstep_fill(float* to, float value, int64_t n);
