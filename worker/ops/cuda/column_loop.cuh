// Loops of kernels over matrices [rows, columns] that have something for each column, such as
// images whose channels are the columns. For .cu files.
#pragma once

#include "worker/ops/cuda/block_sum.cuh"
#include "worker/ops/cuda/element_loop.cuh"

namespace lockstep::worker::cuda {

// A thread's rows of kCount neighbouring columns.
template <int kCount>
struct ColumnRows {
  int64_t first;
  int64_t step;
  int64_t count;
  int64_t columns;
  int64_t column;

  // to[i] = value(lane, from[i]...) for each element i of column + lane. `to` may be among `from`.
  // Several rows are read before the first is written: memory answers late, and the compiler does
  // not know that what is written is not read again.
  template <typename T, typename Value, typename... From>
  LOCKSTEP_DEVICE void MapTo(T* to, const Value& value, const From*... from) const {
    constexpr int kAtATime = kCount > 1 ? 2 : kLanesOf<T>;
    const int64_t stride = step * columns;
    int64_t at = first * columns + column;
    int64_t k = 0;
    LOCKSTEP_NO_UNROLL
    for (; k + kAtATime <= count; k += kAtATime, at += kAtATime * stride) {
      Lanes<T, kCount> values[kAtATime];
      LOCKSTEP_UNROLL
      for (int j = 0; j < kAtATime; ++j) {
        values[j] = LaneValues<T>(value, Load<kCount>(from, at + j * stride)...);
      }
      LOCKSTEP_UNROLL
      for (int j = 0; j < kAtATime; ++j) Store(to, at + j * stride, values[j]);
    }
    LOCKSTEP_NO_UNROLL
    for (; k < count; ++k, at += stride) {
      Store(to, at, LaneValues<T>(value, Load<kCount>(from, at)...));
    }
  }

  template <typename T, typename Value, typename... From>
  LOCKSTEP_DEVICE static Lanes<T, kCount> LaneValues(const Value& value,
                                                     const Lanes<From, kCount>&... from) {
    Lanes<T, kCount> values;
    LOCKSTEP_UNROLL
    for (int lane = 0; lane < kCount; ++lane) {
      values.at[lane] = static_cast<T>(value(lane, Wide(from.at[lane])...));
    }
    return values;
  }
};

// Calls body(rows) for this thread's columns, kCount of them at a time, whatever the number of
// blocks and threads. Neighbouring threads have neighbouring elements. A thread divides once, not
// for each element.
template <int kCount, typename Body>
LOCKSTEP_DEVICE inline void ForEachColumns(int64_t rows, int64_t columns, const Body& body) {
  const int64_t groups = columns / kCount;
  const int64_t threads = int64_t{gridDim.x} * blockDim.x;
  const int64_t thread = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const int64_t width = threads < groups ? threads : groups;
  const int64_t rows_at_a_time = threads / width;
  const int64_t first_row = thread / width;
  if (first_row >= rows_at_a_time || first_row >= rows) return;
  const int64_t count = (rows - first_row - 1) / rows_at_a_time + 1;
  LOCKSTEP_NO_UNROLL
  for (int64_t group = thread - first_row * width; group < groups; group += width) {
    body(ColumnRows<kCount>{first_row, rows_at_a_time, count, columns, group * kCount});
  }
}

// The same with kColumnLanes where there are so many, at addresses that allow it.
template <typename Body, typename... T>
LOCKSTEP_DEVICE inline void ForEachColumn(int64_t rows, int64_t columns, const Body& body,
                                          const T*... addresses) {
  if (columns % kColumnLanes == 0 && AreAligned<kColumnLanes>(addresses...)) {
    return ForEachColumns<kColumnLanes>(rows, columns, body);
  }
  ForEachColumns<1>(rows, columns, body);
}

// Calls body(i, row, column) for each element i.
template <typename Body>
LOCKSTEP_DEVICE inline void ForEachInColumns(int64_t rows, int64_t columns, const Body& body) {
  ForEachColumns<1>(rows, columns, [=](const ColumnRows<1>& own) {
    LOCKSTEP_NO_UNROLL
    for (int64_t k = 0; k < own.count; ++k) {
      const int64_t row = own.first + k * own.step;
      body(row * columns + own.column, row, own.column);
    }
  });
}

// For SumColumnParts.
template <int kSums, int kCount, typename OfColumn, typename Add, typename... From>
LOCKSTEP_DEVICE inline void SumPartsOfColumns(double* parts, int64_t num_parts, int64_t rows,
                                              int64_t columns, const OfColumn& of_column,
                                              const Add& add, const From*... from) {
  const int64_t groups = columns / kCount;
  ForEachElement(num_parts * groups, [&](int64_t i) {
    const int64_t part = i / groups;
    const int64_t column = (i - part * groups) * kCount;
    const int64_t end = rows * (part + 1) / num_parts * columns;
    decltype(of_column(column)) known[kCount];
    double sums[kCount][kSums] = {};
    LOCKSTEP_UNROLL
    for (int lane = 0; lane < kCount; ++lane) known[lane] = of_column(column + lane);
    const auto add_row = [&](const Lanes<From, kCount>&... values) {
      LOCKSTEP_UNROLL
      for (int lane = 0; lane < kCount; ++lane) {
        add(known[lane], sums[lane], Wide(values.at[lane])...);
      }
    };
    LOCKSTEP_UNROLL_SOME
    for (int64_t at = rows * part / num_parts * columns + column; at < end; at += columns) {
      add_row(Load<kCount>(from, at)...);
    }
    LOCKSTEP_UNROLL
    for (int sum = 0; sum < kSums; ++sum) {
      LOCKSTEP_UNROLL
      for (int lane = 0; lane < kCount; ++lane) {
        parts[(sum * columns + column + lane) * num_parts + part] = sums[lane][sum];
      }
    }
  });
}

// kSums sums over the rows for each column. Each thread sums columns over one of `num_parts` parts
// of the rows, so the order of all additions depends on num_parts alone. add(known, sums,
// from[i]...) adds what element i has to sums[0] to sums[kSums - 1]; `known` is of_column(column).
// parts: [kSums, columns, num_parts].
template <int kSums, typename OfColumn, typename Add, typename... From>
LOCKSTEP_DEVICE inline void SumColumnParts(double* parts, int64_t num_parts, int64_t rows,
                                           int64_t columns, const OfColumn& of_column,
                                           const Add& add, const From*... from) {
  if (columns % kColumnLanes == 0 && AreAligned<kColumnLanes>(from...)) {
    return SumPartsOfColumns<kSums, kColumnLanes>(parts, num_parts, rows, columns, of_column, add,
                                                  from...);
  }
  SumPartsOfColumns<kSums, 1>(parts, num_parts, rows, columns, of_column, add, from...);
}

}  // namespace lockstep::worker::cuda
