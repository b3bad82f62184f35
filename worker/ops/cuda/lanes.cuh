// Several neighbouring elements that a thread reads or writes as one. For .cu files.
#pragma once

#include "common/tensor/bfloat16.h"
#include "worker/ops/cuda/kernel.cuh"

namespace lockstep::worker::cuda {

// 16 bytes, the most that a thread moves at once.
template <typename T>
inline constexpr int kLanesOf = 16 / static_cast<int>(sizeof(T));
inline constexpr int kLanes = kLanesOf<float>;

template <typename T, int kCount = kLanes>
struct alignas(sizeof(T) * kCount) Lanes {
  T at[kCount];
};

// Elements i to i + kCount - 1, where Lanes may be.
template <int kCount = kLanes, typename T>
LOCKSTEP_DEVICE inline Lanes<T, kCount> Load(const T* from, int64_t i) {
  return *reinterpret_cast<const Lanes<T, kCount>*>(from + i);
}
template <typename T, int kCount>
LOCKSTEP_DEVICE inline void Store(T* to, int64_t i, const Lanes<T, kCount>& lanes) {
  *reinterpret_cast<Lanes<T, kCount>*>(to + i) = lanes;
}

// Whether Lanes may be at each of these addresses.
template <int kCount = kLanes, typename... T>
LOCKSTEP_DEVICE inline bool AreAligned(const T*... addresses) {
  return ((reinterpret_cast<uintptr_t>(addresses) % alignof(Lanes<T, kCount>) == 0) && ...);
}

// What is computed with an element: a float in place of 16 bits.
LOCKSTEP_DEVICE inline float Wide(BFloat16 element) { return static_cast<float>(element); }
template <typename T>
LOCKSTEP_DEVICE inline T Wide(T element) {
  return element;
}

}  // namespace lockstep::worker::cuda
