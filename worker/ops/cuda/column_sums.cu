#include "worker/ops/cuda/column_loop.cuh"
#include "worker/ops/cuda/column_sums.cuh"

using lockstep::BFloat16;
using lockstep::worker::cuda::BlockSumOf;
using lockstep::worker::cuda::SumColumnParts;

namespace {

template <typename T>
LOCKSTEP_DEVICE void SumParts(double* parts, const T* matrix, int64_t num_parts, int64_t rows,
                              int64_t columns) {
  SumColumnParts<1>(
      parts, num_parts, rows, columns, [](int64_t) { return 0; },
      [](int, double* sum, float value) { *sum += static_cast<double>(value); }, matrix);
}

}  // namespace

LOCKSTEP_KERNEL void lockstep_column_parts(double* parts, const float* matrix, int64_t num_parts,
                                           int64_t rows, int64_t columns) {
  SumParts(parts, matrix, num_parts, rows, columns);
}
LOCKSTEP_KERNEL void lockstep_column_parts_bf16(double* parts, const BFloat16* matrix,
                                                int64_t num_parts, int64_t rows, int64_t columns) {
  SumParts(parts, matrix, num_parts, rows, columns);
}

LOCKSTEP_KERNEL void lockstep_sum_column_parts(float* sums, const double* parts, int64_t num_parts,
                                               int64_t columns) {
  for (int64_t column = blockIdx.x; column < columns; column += gridDim.x) {
    const double sum = BlockSumOf(parts + column * num_parts, num_parts);
    if (threadIdx.x == 0) sums[column] = static_cast<float>(sum);
  }
}
