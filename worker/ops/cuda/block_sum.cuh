// Sums and maxima over the threads of a block. For .cu files whose kernels are launched with
// kRowThreads threads per block. All threads of the block call these functions.
#pragma once

#include "worker/ops/cuda/block_threads.cuh"
#include "worker/ops/cuda/kernel.cuh"

namespace lockstep::worker::cuda {

// The sum of `own` over the threads, for each of them. The order of the additions depends on the
// number of threads alone.
LOCKSTEP_DEVICE inline double BlockSum(double own) {
  __shared__ double sums[kRowThreads];
  __syncthreads();  // who still reads the last sum
  sums[threadIdx.x] = own;
  for (unsigned int half = kRowThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }
  __syncthreads();
  return sums[0];
}

// The sum of values[0] to values[n - 1], likewise.
LOCKSTEP_DEVICE inline double BlockSumOf(const double* values, int64_t n) {
  double own = 0;
  for (int64_t i = threadIdx.x; i < n; i += kRowThreads) own += values[i];
  return BlockSum(own);
}

struct Largest {
  float value;
  int64_t index;
};

// The largest value, and of equal ones the one with the lowest index.
LOCKSTEP_DEVICE inline Largest LargerOf(const Largest& a, const Largest& b) {
  const bool takes_b = b.value > a.value || (b.value == a.value && b.index < a.index);
  return takes_b ? b : a;
}
LOCKSTEP_DEVICE inline Largest BlockLargest(const Largest& own) {
  __shared__ float values[kRowThreads];
  __shared__ int64_t indices[kRowThreads];
  __syncthreads();
  values[threadIdx.x] = own.value;
  indices[threadIdx.x] = own.index;
  for (unsigned int half = kRowThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x >= half) continue;
    const unsigned int other = threadIdx.x + half;
    const Largest larger =
        LargerOf({values[threadIdx.x], indices[threadIdx.x]}, {values[other], indices[other]});
    values[threadIdx.x] = larger.value;
    indices[threadIdx.x] = larger.index;
  }
  __syncthreads();
  return {values[0], indices[0]};
}

}  // namespace lockstep::worker::cuda
