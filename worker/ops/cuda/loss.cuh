// Blocks of kRowThreads threads, each with a row (an example) at a time. A row's loss and whether
// it is correct are doubles, which lockstep_sum_losses adds up.
#pragma once

#include "worker/ops/cuda/kernel.cuh"

// Softmax cross-entropy of `rows` rows of `classes` scores. null: not wanted. `correct`: 1 where
// the first largest score is the label's, else 0.
LOCKSTEP_KERNEL void lockstep_softmax_cross_entropy(float* gradient, double* losses,
                                                    double* correct, const float* scores,
                                                    const int32_t* labels, int64_t classes,
                                                    int64_t rows);

LOCKSTEP_KERNEL void lockstep_softmax(float* probabilities, const float* scores, int64_t classes,
                                      int64_t rows);

// Squared differences, halved. `gradient` null: not wanted.
LOCKSTEP_KERNEL void lockstep_l2(float* gradient, double* losses, const float* y,
                                 const float* targets, int64_t outputs, int64_t rows);

// Cross-entropy of sigmoids. `gradient` null: not wanted; `targets` null: all are `target`.
LOCKSTEP_KERNEL void lockstep_sigmoid_cross_entropy(float* gradient, double* losses,
                                                    const float* logits, const float* targets,
                                                    float target, int64_t outputs, int64_t rows);

// One block. The sum of the losses by `divisor`, to `mean` and to sums[0], and the sum of `correct`
// to sums[1]. null: not wanted; `correct` null: 0.
LOCKSTEP_KERNEL void lockstep_sum_losses(float* mean, double* sums, const double* losses,
                                         const double* correct, double divisor, int64_t rows);

// As many threads as there are elements.
LOCKSTEP_KERNEL void lockstep_sigmoid_of_logits(float* probabilities, const float* logits,
                                                int64_t n);
