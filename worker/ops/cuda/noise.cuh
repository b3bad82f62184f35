#pragma once

#include "worker/ops/cuda/kernel.cuh"

// n standard normal numbers. `key`: PhiloxKey(random_key, name). One thread computes kNoisePerBlock
// of them.
LOCKSTEP_KERNEL void lockstep_noise(float* to, uint64_t key, int64_t n);
