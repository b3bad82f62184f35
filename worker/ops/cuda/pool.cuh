// Pools of images [batch, height, width, channels]. A thread for each element of what is written,
// or fewer. Memory is aligned to 16 bytes.
#pragma once

#include "common/tensor/bfloat16.h"
#include "worker/ops/cuda/kernel.cuh"

// Height first, then width. `pad`: before the first element. Input, output and a window have fewer
// than 2^31 elements each: a GPU divides by 32 bits several times faster than by 64.
struct LockstepPool {
  int32_t batch;
  int32_t channels;
  int32_t input[2];
  int32_t output[2];
  int32_t extent[2];
  int32_t stride[2];
  int32_t pad[2];
};

// The first of the largest elements of each window, in the order of rows. `places`, where it is in
// its window, is for lockstep_max_pool_gradient; null: not wanted.
LOCKSTEP_KERNEL void lockstep_max_pool(float* y, int32_t* places, const float* x,
                                       LockstepPool pool);
LOCKSTEP_KERNEL void lockstep_max_pool_bf16(lockstep::BFloat16* y, int32_t* places,
                                            const lockstep::BFloat16* x, LockstepPool pool);
// Each element sums the gradients of the windows whose maximum it is, in their order.
LOCKSTEP_KERNEL void lockstep_max_pool_gradient(float* to, const int32_t* places,
                                                const float* gradient, LockstepPool pool);
LOCKSTEP_KERNEL void lockstep_max_pool_gradient_bf16(lockstep::BFloat16* to, const int32_t* places,
                                                     const lockstep::BFloat16* gradient,
                                                     LockstepPool pool);

// The mean of the elements of each window that are of the image.
LOCKSTEP_KERNEL void lockstep_average_pool(float* y, const float* x, LockstepPool pool);
LOCKSTEP_KERNEL void lockstep_average_pool_bf16(lockstep::BFloat16* y, const lockstep::BFloat16* x,
                                                LockstepPool pool);
LOCKSTEP_KERNEL void lockstep_average_pool_gradient(float* to, const float* gradient,
                                                    LockstepPool pool);
LOCKSTEP_KERNEL void lockstep_average_pool_gradient_bf16(lockstep::BFloat16* to,
                                                         const lockstep::BFloat16* gradient,
                                                         LockstepPool pool);
