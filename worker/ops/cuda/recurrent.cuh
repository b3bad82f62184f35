// Kernels of recurrent layers: all but their matrix products.
#pragma once

#include "worker/ops/cuda/kernel.cuh"

// to[r][c] += from[r * stride + c] of to [rows, width].
LOCKSTEP_KERNEL void lockstep_add_rows(float* to, const float* from, int64_t stride, int64_t rows,
                                       int64_t width);

// One step of lstm.h, a thread for each unit of each of `rows` examples. Gates: [rows, 4 units].
// `gates`: the input's product, which the activations replace; `state`: the state's.
LOCKSTEP_KERNEL void lockstep_lstm(float* gates, const float* state, const float* before,
                                   float* cell, float* hidden, int64_t rows, int64_t units);
// `gates`: activations, which the gradients of the sums replace; `dh`, `dc`: gradients of h and c
// after the step, which those from before it replace, of h beside the state's product.
LOCKSTEP_KERNEL void lockstep_lstm_gradient(float* gates, float* dh, float* dc, const float* before,
                                            const float* cell, int64_t rows, int64_t units);

// The same of gru.h. Gates: [rows, 3 units].
LOCKSTEP_KERNEL void lockstep_gru(float* gates, const float* state, const float* before,
                                  float* hidden, int64_t rows, int64_t units);
// The gradients of the state's product replace `state`.
LOCKSTEP_KERNEL void lockstep_gru_gradient(float* gates, float* state, float* dh,
                                           const float* before, int64_t rows, int64_t units);
