#include "worker/ops/cuda/element_loop.cuh"
#include "worker/ops/cuda/moving_average.cuh"
#include "worker/ops/gradient_element.h"

using lockstep::worker::AfterUpdate;
using lockstep::worker::cuda::ForEachElement;

LOCKSTEP_KERNEL void lockstep_moving_average(float* to, const float* old, LockstepUpdates updates,
                                             float momentum, int64_t n) {
  ForEachElement(n, [&](int64_t i) {
    float value = old[i];
    for (int32_t k = 0; k < updates.count; ++k) {
      value = AfterUpdate(value, updates.at[k][i], old[i], momentum);
    }
    to[i] = value;
  });
}
