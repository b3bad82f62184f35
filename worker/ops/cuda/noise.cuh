#pragma once

#include "worker/ops/cuda/kernel.cuh"

// n standard normal numbers. `purpose`: PurposeHash(name). One thread computes
// kNoisePerBlock of them.
LOCKSTEP_KERNEL void lockstep_noise(float* to, const uint64_t* random_key, uint64_t purpose,
                                    int64_t n);
