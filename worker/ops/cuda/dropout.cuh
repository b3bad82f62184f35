#pragma once

#include "common/tensor/bfloat16.h"
#include "worker/ops/cuda/kernel.cuh"

// Keeps each of n elements with probability 1 - rate, scaled, and writes which ones, 0 or 1.
// `purpose`: PurposeHash(name). One thread computes kDropoutPerBlock elements. `y` may be `x`.
LOCKSTEP_KERNEL void lockstep_dropout(float* y, uint8_t* kept, const float* x,
                                      const uint64_t* random_key, uint64_t purpose, float rate,
                                      float scale, int64_t n);
LOCKSTEP_KERNEL void lockstep_dropout_bf16(lockstep::BFloat16* y, uint8_t* kept,
                                           const lockstep::BFloat16* x, const uint64_t* random_key,
                                           uint64_t purpose, float rate, float scale, int64_t n);

// to[i] = gradient[i] * scale where element i was kept, else 0. `to` may be `gradient`.
LOCKSTEP_KERNEL void lockstep_dropout_gradient(float* to, const uint8_t* kept,
                                               const float* gradient, float scale, int64_t n);
LOCKSTEP_KERNEL void lockstep_dropout_gradient_bf16(lockstep::BFloat16* to, const uint8_t* kept,
                                                    const lockstep::BFloat16* gradient, float scale,
                                                    int64_t n);
