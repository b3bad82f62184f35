// Loops of kernels over matrices [rows, columns] that have something for each column, such as
// images whose channels are the columns. For .cu files.
#pragma once

#include "worker/ops/cuda/block_sum.cuh"
#include "worker/ops/cuda/element_loop.cuh"

namespace lockstep::worker::cuda {

// A thread's rows of one column.
struct ColumnRows {
  int64_t first;
  int64_t step;
  int64_t count;
  int64_t columns;
  int64_t column;

  LOCKSTEP_DEVICE int64_t row(int64_t k) const { return first + k * step; }

  // Calls body(i, row) for each element i.
  template <typename Body>
  LOCKSTEP_DEVICE void ForEach(const Body& body) const {
    LOCKSTEP_NO_UNROLL
    for (int64_t k = 0; k < count; ++k) body(row(k) * columns + column, row(k));
  }

  // to[i] = value(i) for each element i, as Map of element_loop.cuh.
  template <typename T, typename Value>
  LOCKSTEP_DEVICE void MapTo(T* to, const Value& value) const {
    const int64_t start = first * columns + column;
    const int64_t stride = step * columns;
    Map(
        count, [=](int64_t k) { return start + k * stride; }, to, value);
  }
};

// Calls body(column, rows) for this thread's columns, whatever the number of blocks and threads.
// Neighbouring threads have neighbouring elements. A thread divides once, not for each element.
template <typename Body>
LOCKSTEP_DEVICE inline void ForEachColumn(int64_t rows, int64_t columns, const Body& body) {
  const int64_t threads = int64_t{gridDim.x} * blockDim.x;
  const int64_t thread = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const int64_t width = threads < columns ? threads : columns;
  const int64_t rows_at_a_time = threads / width;
  const int64_t first_row = thread / width;
  if (first_row >= rows_at_a_time || first_row >= rows) return;
  const int64_t count = (rows - first_row - 1) / rows_at_a_time + 1;
  LOCKSTEP_NO_UNROLL
  for (int64_t column = thread - first_row * width; column < columns; column += width) {
    body(column, ColumnRows{first_row, rows_at_a_time, count, columns, column});
  }
}

// Calls body(i, row, column) for each element i.
template <typename Body>
LOCKSTEP_DEVICE inline void ForEachInColumns(int64_t rows, int64_t columns, const Body& body) {
  ForEachColumn(rows, columns, [=](int64_t column, const ColumnRows& own) {
    own.ForEach([=](int64_t i, int64_t row) { body(i, row, column); });
  });
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
    LOCKSTEP_UNROLL_SOME
    for (int64_t at = rows * part / num_parts * columns + column; at < end; at += columns) {
      add(at, column, sums);
    }
    for (int sum = 0; sum < kSums; ++sum) parts[sum * num_parts * columns + i] = sums[sum];
  });
}

// The sum of a column over all parts, by the threads of a block: for blocks of kRowThreads threads,
// all of which call it.
LOCKSTEP_DEVICE inline double BlockSumOfParts(const double* parts, int64_t num_parts,
                                              int64_t columns, int64_t column) {
  double own = 0;
  for (int64_t part = threadIdx.x; part < num_parts; part += kRowThreads) {
    own += parts[part * columns + column];
  }
  return BlockSum(own);
}

}  // namespace lockstep::worker::cuda
