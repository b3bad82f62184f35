// The loop of kernels that compute each element alone. For .cu files.
#pragma once

#include "worker/ops/cuda/kernel.cuh"
#include "worker/ops/cuda/lanes.cuh"

namespace lockstep::worker::cuda {

// Calls body(i) for this thread's part of [0, n), whatever the number of blocks and threads.
// Neighbouring threads have neighbouring elements.
template <typename Body>
LOCKSTEP_DEVICE inline void ForEachElement(int64_t n, const Body& body) {
  const int64_t threads = int64_t{gridDim.x} * blockDim.x;
  LOCKSTEP_NO_UNROLL
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += threads) body(i);
}

// value() of each lane.
template <typename T, int kCount, typename Value, typename... From>
LOCKSTEP_DEVICE inline Lanes<T, kCount> ValuesOf(const Value& value,
                                                 const Lanes<From, kCount>&... from) {
  Lanes<T, kCount> values;
  LOCKSTEP_UNROLL
  for (int lane = 0; lane < kCount; ++lane) {
    values.at[lane] = static_cast<T>(value(Wide(from.at[lane])...));
  }
  return values;
}

// to[i] = value(from[i]...) for each i in [0, n), whatever the number of blocks and threads. `to`
// may be among `from`. Elements of 16 bits are given as float, and the value is rounded to T.
template <typename T, typename Value, typename... From>
LOCKSTEP_DEVICE inline void MapElements(T* to, int64_t n, const Value& value, const From*... from) {
  constexpr int kCount = kLanesOf<T>;
  int64_t done = 0;
  if (AreAligned<kCount>(to, from...)) {
    const int64_t groups = n / kCount;
    const int64_t threads = int64_t{gridDim.x} * blockDim.x;
    int64_t group = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    LOCKSTEP_NO_UNROLL
    for (; group + threads < groups; group += 2 * threads) {
      const int64_t i = group * kCount;
      const int64_t next = i + threads * kCount;
      const auto first = ValuesOf<T, kCount>(value, Load<kCount>(from, i)...);
      const auto second = ValuesOf<T, kCount>(value, Load<kCount>(from, next)...);
      Store(to, i, first);
      Store(to, next, second);
    }
    if (group < groups) {
      const int64_t i = group * kCount;
      Store(to, i, ValuesOf<T, kCount>(value, Load<kCount>(from, i)...));
    }
    done = groups * kCount;
  }
  ForEachElement(n - done,
                 [=](int64_t i) { to[done + i] = static_cast<T>(value(Wide(from[done + i])...)); });
}

}  // namespace lockstep::worker::cuda
