#pragma once

#include "common/tensor/bfloat16.h"
#include "worker/ops/cuda/kernel.cuh"

// Copies `width` columns of `rows` rows: from column `from_first` of rows of `from_width` elements
// to column `to_first` of rows of `to_width`. The memory does not overlap.
LOCKSTEP_KERNEL void lockstep_copy_columns(float* to, int64_t to_width, int64_t to_first,
                                           const float* from, int64_t from_width,
                                           int64_t from_first, int64_t width, int64_t rows);
LOCKSTEP_KERNEL void lockstep_copy_columns_bf16(lockstep::BFloat16* to, int64_t to_width,
                                                int64_t to_first, const lockstep::BFloat16* from,
                                                int64_t from_width, int64_t from_first,
                                                int64_t width, int64_t rows);

// The gradient of columns [first, first + count) of rows of `channels` elements, 0 elsewhere.
LOCKSTEP_KERNEL void lockstep_columns_gradient(float* to, const float* gradient, int64_t channels,
                                               int64_t first, int64_t count, int64_t rows);
