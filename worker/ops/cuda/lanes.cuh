// Several neighbouring elements that a thread reads or writes as one. For .cu files.
#pragma once

#include "worker/ops/cuda/kernel.cuh"

namespace lockstep::worker::cuda {

// 16 bytes of float32, the most that a thread moves at once.
inline constexpr int kLanes = 4;

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
template <typename... T>
LOCKSTEP_DEVICE inline bool AreAligned(const T*... addresses) {
  return ((reinterpret_cast<uintptr_t>(addresses) % alignof(Lanes<T>) == 0) && ...);
}

}  // namespace lockstep::worker::cuda
