// Sums over the rows of a matrix [rows, columns], in double: of many parts of the rows first, then
// of these. The order of all additions depends on the number of parts alone.
#pragma once

#include "common/tensor/bfloat16.h"
#include "worker/ops/cuda/kernel.cuh"

// parts[c][p] = the sum of column c in part p of `num_parts`. One thread for each part of
// kColumnLanes columns, or of one where their number is no multiple.
LOCKSTEP_KERNEL void lockstep_column_parts(double* parts, const float* matrix, int64_t num_parts,
                                           int64_t rows, int64_t columns);
LOCKSTEP_KERNEL void lockstep_column_parts_bf16(double* parts, const lockstep::BFloat16* matrix,
                                                int64_t num_parts, int64_t rows, int64_t columns);

// sums[c] = the sum of parts[c][...]. Blocks of kRowThreads threads, one per column.
LOCKSTEP_KERNEL void lockstep_sum_column_parts(float* sums, const double* parts, int64_t num_parts,
                                               int64_t columns);
