#pragma once

#include "common/tensor/bfloat16.h"
#include "worker/ops/cuda/kernel.cuh"

// y[i] = f(x[i]) of n elements. `y` may be `x`.
LOCKSTEP_KERNEL void lockstep_relu(float* y, const float* x, int64_t n);
LOCKSTEP_KERNEL void lockstep_relu_bf16(lockstep::BFloat16* y, const lockstep::BFloat16* x,
                                        int64_t n);
LOCKSTEP_KERNEL void lockstep_tanh(float* y, const float* x, int64_t n);
LOCKSTEP_KERNEL void lockstep_tanh_bf16(lockstep::BFloat16* y, const lockstep::BFloat16* x,
                                        int64_t n);
LOCKSTEP_KERNEL void lockstep_sigmoid(float* y, const float* x, int64_t n);
LOCKSTEP_KERNEL void lockstep_sigmoid_bf16(lockstep::BFloat16* y, const lockstep::BFloat16* x,
                                           int64_t n);

// to[i] = d loss / d x[i], of y = f(x) and gradient = d loss / d y. `to` may be `gradient`.
LOCKSTEP_KERNEL void lockstep_relu_gradient(float* to, const float* y, const float* gradient,
                                            int64_t n);
LOCKSTEP_KERNEL void lockstep_relu_gradient_bf16(lockstep::BFloat16* to,
                                                 const lockstep::BFloat16* y,
                                                 const lockstep::BFloat16* gradient, int64_t n);
LOCKSTEP_KERNEL void lockstep_tanh_gradient(float* to, const float* y, const float* gradient,
                                            int64_t n);
LOCKSTEP_KERNEL void lockstep_tanh_gradient_bf16(lockstep::BFloat16* to,
                                                 const lockstep::BFloat16* y,
                                                 const lockstep::BFloat16* gradient, int64_t n);
LOCKSTEP_KERNEL void lockstep_sigmoid_gradient(float* to, const float* y, const float* gradient,
                                               int64_t n);
LOCKSTEP_KERNEL void lockstep_sigmoid_gradient_bf16(lockstep::BFloat16* to,
                                                    const lockstep::BFloat16* y,
                                                    const lockstep::BFloat16* gradient, int64_t n);
