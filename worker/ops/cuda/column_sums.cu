#include "worker/ops/cuda/column_loop.cuh"
#include "worker/ops/cuda/column_sums.cuh"

using lockstep::worker::cuda::ForEachElement;
using lockstep::worker::cuda::SumColumnParts;
using lockstep::worker::cuda::SumOfParts;

LOCKSTEP_KERNEL void lockstep_column_parts(double* parts, const float* matrix, int64_t num_parts,
                                           int64_t rows, int64_t columns) {
  SumColumnParts<1>(parts, num_parts, rows, columns,
                    [=](int64_t i, int64_t, double* sum) { *sum += matrix[i]; });
}

LOCKSTEP_KERNEL void lockstep_sum_column_parts(float* sums, const double* parts, int64_t num_parts,
                                               int64_t columns) {
  ForEachElement(columns, [=](int64_t column) {
    sums[column] = static_cast<float>(SumOfParts(parts, num_parts, columns, column));
  });
}
