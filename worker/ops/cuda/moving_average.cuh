#pragma once

#include "worker/ops/cuda/kernel.cuh"

// 2 KiB of the 4 KiB that a kernel's parameters may take.
inline constexpr int32_t kLockstepMostUpdates = 256;

struct LockstepUpdates {
  const float* at[kLockstepMostUpdates];
  int32_t count;
};

// to[i] = old[i] after all updates, in their order. `to` may be any of the updates.
LOCKSTEP_KERNEL void lockstep_moving_average(float* to, const float* old, LockstepUpdates updates,
                                             float momentum, int64_t n);
