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

// Elements that a thread reads before it writes the first: memory answers late, and the compiler
// does not know that what is written is not read again.
inline constexpr int kAtATime = 4;

// to[at(k)] = value(at(k)) for k from 0 to count - 1. value(i) may read element i of `to` itself,
// and no other.
template <typename At, typename Value>
LOCKSTEP_DEVICE inline void Map(int64_t count, const At& at, float* to, const Value& value) {
  int64_t k = 0;
  LOCKSTEP_NO_UNROLL
  for (; k + kAtATime <= count; k += kAtATime) {
    float values[kAtATime];
    LOCKSTEP_UNROLL
    for (int j = 0; j < kAtATime; ++j) values[j] = value(at(k + j));
    LOCKSTEP_UNROLL
    for (int j = 0; j < kAtATime; ++j) to[at(k + j)] = values[j];
  }
  LOCKSTEP_NO_UNROLL
  for (; k < count; ++k) to[at(k)] = value(at(k));
}

// value() of each lane.
template <typename Value, typename... From>
LOCKSTEP_DEVICE inline Lanes<float> ValuesOf(const Value& value, const Lanes<From>&... from) {
  Lanes<float> values;
  LOCKSTEP_UNROLL
  for (int lane = 0; lane < kLanes; ++lane) values.at[lane] = value(from.at[lane]...);
  return values;
}

// to[i] = value(from[i]...) for each i in [0, n), whatever the number of blocks and threads. `to`
// may be among `from`.
template <typename Value, typename... From>
LOCKSTEP_DEVICE inline void MapElements(float* to, int64_t n, const Value& value,
                                        const From*... from) {
  int64_t done = 0;
  if (AreAligned(to, from...)) {
    const int64_t groups = n / kLanes;
    const int64_t threads = int64_t{gridDim.x} * blockDim.x;
    int64_t group = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    LOCKSTEP_NO_UNROLL
    for (; group + threads < groups; group += 2 * threads) {
      const int64_t i = group * kLanes;
      const int64_t next = i + threads * kLanes;
      const Lanes<float> first = ValuesOf(value, Load(from, i)...);
      const Lanes<float> second = ValuesOf(value, Load(from, next)...);
      Store(to, i, first);
      Store(to, next, second);
    }
    if (group < groups) {
      const int64_t i = group * kLanes;
      Store(to, i, ValuesOf(value, Load(from, i)...));
    }
    done = groups * kLanes;
  }
  ForEachElement(n - done, [=](int64_t i) { to[done + i] = value(from[done + i]...); });
}

}  // namespace lockstep::worker::cuda
