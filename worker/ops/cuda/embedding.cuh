// Rows of a table, forward and backward. A position: which of the rows that the variable holds; -1
// for one that it does not hold.
#pragma once

#include "worker/ops/cuda/kernel.cuh"

// The positions of n indices among `rows`, ascending, of the table; null: the variable holds the
// first num_rows rows.
LOCKSTEP_KERNEL void lockstep_find_rows(int32_t* positions, const float* indices,
                                        const int64_t* rows, int64_t num_rows, int64_t n);

// y[i] = the sum of the rows at `count` positions from i * count on, in their order; y: [outputs,
// dim]. NaN where one is not held.
LOCKSTEP_KERNEL void lockstep_embedding(float* y, const float* table, const int32_t* positions,
                                        int64_t count, int64_t outputs, int64_t dim);

// Blocks of kRowThreads threads for as many held rows each. to[r] = the sum of gradient[i / count]
// over the positions i that are r, in their order; to: [num_rows, dim], gradient: [n / count, dim].
LOCKSTEP_KERNEL void lockstep_embedding_gradient(float* to, const float* gradient,
                                                 const int32_t* positions, int64_t count, int64_t n,
                                                 int64_t num_rows, int64_t dim);
