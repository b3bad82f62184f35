// Loops of kernels over matrices [rows, columns] that have something for each column, such as
// images whose channels are the columns. For .cu files.
#pragma once

#include "worker/ops/cuda/element_loop.cuh"

namespace lockstep::worker::cuda {

// Calls body(i, row, column) for this thread's elements i, whatever the number of blocks and threads.
// Neighbouring threads have neighbouring elements. A thread divides once, not for each element.
template <typename Body>
LOCKSTEP_DEVICE inline void ForEachInColumns(int64_t rows, int64_t columns, const Body& body) {
  const int64_t threads = int64_t{gridDim.x} * blockDim.x;
  const int64_t thread = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const int64_t width = threads < columns ? threads : columns;
  const int64_t rows_at_a_time = threads / width;
  const int64_t first_row = thread / width;
  if (first_row >= rows_at_a_time) return;
  LOCKSTEP_NO_UNROLL
  for (int64_t column = thread - first_row * width; column < columns; column += width) {
    LOCKSTEP_NO_UNROLL
    for (int64_t row = first_row; row < rows; row += rows_at_a_time) {
      body(row * columns + column, row, column);
    }
  }
}

// kSums sums over the rows for each column. Each thread sums a column over one of `num_parts` parts
// of the rows, so the order of all additions depends on num_parts alone. add(i, column, sums) adds
// what element i has to sums[0] to sums[kSums - 1]. parts: [kSums, num_parts, columns].
template <int kSums, typename Add>
LOCKSTEP_DEVICE inline void SumColumnParts(double* parts, int64_t num_parts, int64_t rows,
                                           int64_t columns, const Add& add) {
  ForEachElement(num_parts * columns, [&](int64_t i) {
    const int64_t part = i / columns;
    const int64_t column = i - part * columns;
    const int64_t end = rows * (part + 1) / num_parts * columns;
    double sums[kSums] = {};
    LOCKSTEP_NO_UNROLL
    for (int64_t at = rows * part / num_parts * columns + column; at < end; at += columns) {
      add(at, column, sums);
    }
    for (int sum = 0; sum < kSums; ++sum) parts[sum * num_parts * columns + i] = sums[sum];
  });
}

// The sum of a column over all parts, in their order.
LOCKSTEP_DEVICE inline double SumOfParts(const double* parts, int64_t num_parts, int64_t columns,
                                         int64_t column) {
  double sum = 0;
  for (int64_t part = 0; part < num_parts; ++part) sum += parts[part * columns + column];
  return sum;
}

}  // namespace lockstep::worker::cuda
