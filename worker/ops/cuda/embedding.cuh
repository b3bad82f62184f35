// Rows of a table, forward and backward. A position: which of the rows that the variable holds; -1
// for one that it does not hold. num_held: in memory of the device, how many these are; null: all
// table_rows rows of the table.
#pragma once

#include "worker/ops/cuda/kernel.cuh"

// The positions of n indices among `rows`, ascending; where all rows are held, these are not read.
LOCKSTEP_KERNEL void lockstep_find_rows(int32_t* positions, const float* indices,
                                        const int64_t* rows, const int64_t* num_held,
                                        int64_t table_rows, int64_t n);

// y[i] = the sum of the rows at `count` positions from i * count on, in their order; y: [outputs,
// dim]. NaN where one is not held.
LOCKSTEP_KERNEL void lockstep_embedding(float* y, const float* table, const int32_t* positions,
                                        int64_t count, int64_t outputs, int64_t dim);

// Blocks of kRowThreads threads for as many held rows each. to[r] = the sum of gradient[i / count]
// over the positions i that are r, in their order; to: [held rows, dim], gradient: [n / count,
// dim].
LOCKSTEP_KERNEL void lockstep_embedding_gradient(float* to, const float* gradient,
                                                 const int32_t* positions, int64_t count, int64_t n,
                                                 const int64_t* num_held, int64_t table_rows,
                                                 int64_t dim);
