// Batch normalisation of x [rows, channels], forward and backward (Ioffe and Szegedy, "Batch
// normalization", 2015, with the derivatives of its section 3). `relu`: y is cut off at 0.
#pragma once

#include "common/tensor/bfloat16.h"
#include "worker/ops/cuda/kernel.cuh"

// The sums of x and of its squares. parts: [2, channels, num_parts]; one thread for each part of
// kColumnLanes channels, or of one where their number is no multiple.
LOCKSTEP_KERNEL void lockstep_moment_parts(double* parts, const float* x, int64_t num_parts,
                                           int64_t rows, int64_t channels);
LOCKSTEP_KERNEL void lockstep_moment_parts_bf16(double* parts, const lockstep::BFloat16* x,
                                                int64_t num_parts, int64_t rows, int64_t channels);
// Mean and biased variance of the sums. Blocks of kRowThreads threads, one per channel.
LOCKSTEP_KERNEL void lockstep_moments(float* mean, float* variance, const double* parts,
                                      int64_t num_parts, int64_t rows, int64_t channels);

// As many threads as there are elements, by kColumnLanes as above; here and below.
LOCKSTEP_KERNEL void lockstep_batch_norm(float* y, const float* x, const float* mean,
                                         const float* variance, const float* gamma,
                                         const float* beta, float epsilon, bool relu, int64_t rows,
                                         int64_t channels);
LOCKSTEP_KERNEL void lockstep_batch_norm_bf16(lockstep::BFloat16* y, const lockstep::BFloat16* x,
                                              const float* mean, const float* variance,
                                              const float* gamma, const float* beta, float epsilon,
                                              bool relu, int64_t rows, int64_t channels);

// The sums that are the gradients of beta and gamma, in this order; parts as above. `gradient` is
// that of y, which is computed again for `relu`.
LOCKSTEP_KERNEL void lockstep_batch_norm_gradient_parts(double* parts, const float* x,
                                                        const float* gradient, const float* mean,
                                                        const float* variance, const float* gamma,
                                                        const float* beta, float epsilon, bool relu,
                                                        int64_t num_parts, int64_t rows,
                                                        int64_t channels);
LOCKSTEP_KERNEL void lockstep_batch_norm_gradient_parts_bf16(
    double* parts, const lockstep::BFloat16* x, const lockstep::BFloat16* gradient,
    const float* mean, const float* variance, const float* gamma, const float* beta, float epsilon,
    bool relu, int64_t num_parts, int64_t rows, int64_t channels);
// The gradient of x. `to` may be `gradient`.
LOCKSTEP_KERNEL void lockstep_batch_norm_gradient(float* to, const float* x, const float* gradient,
                                                  const float* mean, const float* variance,
                                                  const float* gamma, const float* beta,
                                                  const float* gamma_gradient,
                                                  const float* beta_gradient, float epsilon,
                                                  bool relu, int64_t rows, int64_t channels);
LOCKSTEP_KERNEL void lockstep_batch_norm_gradient_bf16(
    lockstep::BFloat16* to, const lockstep::BFloat16* x, const lockstep::BFloat16* gradient,
    const float* mean, const float* variance, const float* gamma, const float* beta,
    const float* gamma_gradient, const float* beta_gradient, float epsilon, bool relu, int64_t rows,
    int64_t channels);
// The same where mean and variance are constants.
LOCKSTEP_KERNEL void lockstep_frozen_batch_norm_gradient(float* to, const float* y,
                                                         const float* gradient,
                                                         const float* variance, const float* gamma,
                                                         float epsilon, bool relu, int64_t rows,
                                                         int64_t channels);
LOCKSTEP_KERNEL void lockstep_frozen_batch_norm_gradient_bf16(
    lockstep::BFloat16* to, const lockstep::BFloat16* y, const lockstep::BFloat16* gradient,
    const float* variance, const float* gamma, float epsilon, bool relu, int64_t rows,
    int64_t channels);

// to[i] = momentum * old[i] + (1 - momentum) * of_batch[i].
LOCKSTEP_KERNEL void lockstep_follow(float* to, const float* old, const float* of_batch,
                                     float momentum, int64_t n);
