#include "worker/ops/cuda/column_loop.cuh"
#include "worker/ops/cuda/columns.cuh"

using lockstep::BFloat16;
using lockstep::worker::cuda::ForEachInColumns;

namespace {

template <typename T>
LOCKSTEP_DEVICE void CopyColumns(T* to, int64_t to_width, int64_t to_first, const T* from,
                                 int64_t from_width, int64_t from_first, int64_t width,
                                 int64_t rows) {
  ForEachInColumns(rows, width, [=](int64_t, int64_t row, int64_t column) {
    to[row * to_width + to_first + column] = from[row * from_width + from_first + column];
  });
}

}  // namespace

LOCKSTEP_KERNEL void lockstep_copy_columns(float* to, int64_t to_width, int64_t to_first,
                                           const float* from, int64_t from_width,
                                           int64_t from_first, int64_t width, int64_t rows) {
  CopyColumns(to, to_width, to_first, from, from_width, from_first, width, rows);
}
LOCKSTEP_KERNEL void lockstep_copy_columns_bf16(BFloat16* to, int64_t to_width, int64_t to_first,
                                                const BFloat16* from, int64_t from_width,
                                                int64_t from_first, int64_t width, int64_t rows) {
  CopyColumns(to, to_width, to_first, from, from_width, from_first, width, rows);
}

LOCKSTEP_KERNEL void lockstep_columns_gradient(float* to, const float* gradient, int64_t channels,
                                               int64_t first, int64_t count, int64_t rows) {
  ForEachInColumns(rows, channels, [=](int64_t i, int64_t row, int64_t channel) {
    const int64_t column = channel - first;
    to[i] = column >= 0 && column < count ? gradient[row * count + column] : 0.0f;
  });
}
