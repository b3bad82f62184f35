#include <cmath>

#include "worker/ops/cuda/block_threads.cuh"
#include "worker/ops/cuda/column_loop.cuh"
#include "worker/ops/cuda/embedding.cuh"

using lockstep::worker::cuda::ForEachElement;
using lockstep::worker::cuda::ForEachInColumns;
using lockstep::worker::cuda::kRowThreads;

namespace {

constexpr int32_t kNotHeld = -1;

// Positions that a thread looks at between two barriers: a bit of a word for each.
constexpr int64_t kPerThread = 32;

LOCKSTEP_DEVICE int32_t PositionOf(int64_t row, const int64_t* rows, int64_t num_rows) {
  int64_t begin = 0;
  int64_t end = num_rows;
  while (begin < end) {
    const int64_t middle = (begin + end) / 2;
    if (rows[middle] < row) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  return begin < num_rows && rows[begin] == row ? static_cast<int32_t>(begin) : kNotHeld;
}

// Which of the positions from `first` on are in [begin, end), a bit for each.
LOCKSTEP_DEVICE uint32_t FindIn(const int32_t* positions, int64_t first, int64_t n, int64_t begin,
                                int64_t end) {
  uint32_t found = 0;
  for (int64_t i = 0; i < kPerThread && first + i < n; ++i) {
    const int32_t position = positions[first + i];
    if (position >= begin && position < end) found |= uint32_t{1} << i;
  }
  return found;
}

}  // namespace

LOCKSTEP_KERNEL void lockstep_find_rows(int32_t* positions, const float* indices,
                                        const int64_t* rows, const int64_t* num_held,
                                        int64_t table_rows, int64_t n) {
  const int64_t held = num_held != nullptr ? *num_held : table_rows;
  ForEachElement(n, [=](int64_t i) {
    const int64_t row = static_cast<int64_t>(indices[i]);
    if (num_held != nullptr) {
      positions[i] = PositionOf(row, rows, held);
    } else {
      positions[i] = row >= 0 && row < held ? static_cast<int32_t>(row) : kNotHeld;
    }
  });
}

LOCKSTEP_KERNEL void lockstep_embedding(float* y, const float* table, const int32_t* positions,
                                        int64_t count, int64_t outputs, int64_t dim) {
  ForEachInColumns(outputs, dim, [=](int64_t i, int64_t output, int64_t column) {
    const int64_t first = output * count;
    float sum = 0;
    for (int64_t k = 0; k < count; ++k) {
      const int64_t position = positions[first + k];
      const float value = position == kNotHeld ? NAN : table[position * dim + column];
      sum = k == 0 ? value : sum + value;
    }
    y[i] = sum;
  });
}

LOCKSTEP_KERNEL void lockstep_embedding_gradient(float* to, const float* gradient,
                                                 const int32_t* positions, int64_t count, int64_t n,
                                                 const int64_t* num_held, int64_t table_rows,
                                                 int64_t dim) {
  const int64_t num_rows = num_held != nullptr ? *num_held : table_rows;
  __shared__ uint32_t found[kRowThreads];
  for (int64_t begin = int64_t{blockIdx.x} * kRowThreads; begin < num_rows;
       begin += int64_t{gridDim.x} * kRowThreads) {
    const int64_t end = begin + kRowThreads < num_rows ? begin + kRowThreads : num_rows;
    // From here on a column of these rows is one thread's.
    for (int64_t row = begin; row < end; ++row) {
      for (int64_t d = threadIdx.x; d < dim; d += kRowThreads) to[row * dim + d] = 0;
    }
    for (int64_t first = 0; first < n; first += kRowThreads * kPerThread) {
      __syncthreads();  // who still reads the last words
      found[threadIdx.x] = FindIn(positions, first + threadIdx.x * kPerThread, n, begin, end);
      __syncthreads();
      for (int64_t word = 0; word < kRowThreads; ++word) {
        if (found[word] == 0) continue;
        for (int64_t bit = 0; bit < kPerThread; ++bit) {
          if ((found[word] >> bit & 1) == 0) continue;
          const int64_t i = first + word * kPerThread + bit;
          for (int64_t d = threadIdx.x; d < dim; d += kRowThreads) {
            to[positions[i] * dim + d] += gradient[i / count * dim + d];
          }
        }
      }
    }
  }
}
