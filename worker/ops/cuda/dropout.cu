#include "common/base/philox_block.h"
#include "worker/ops/cuda/dropout.cuh"
#include "worker/ops/cuda/element_loop.cuh"
#include "worker/ops/dropout_element.h"

using lockstep::PhiloxBlock;
using lockstep::PhiloxNumbers;
using lockstep::worker::DropElement;
using lockstep::worker::kDropoutPerBlock;
using lockstep::worker::KeepsElement;
using lockstep::worker::cuda::ForEachElement;

LOCKSTEP_KERNEL void lockstep_dropout(float* y, uint8_t* kept, const float* x, uint64_t key,
                                      float rate, float scale, int64_t n) {
  ForEachElement((n + kDropoutPerBlock - 1) / kDropoutPerBlock, [=](int64_t block) {
    const PhiloxNumbers numbers = PhiloxBlock(key, static_cast<uint64_t>(block), /*lane=*/0);
    for (int64_t number = 0; number < kDropoutPerBlock; ++number) {
      const int64_t i = block * kDropoutPerBlock + number;
      if (i >= n) return;
      kept[i] = KeepsElement(numbers.at[number], rate);
      y[i] = DropElement(x[i], kept[i], scale);
    }
  });
}

LOCKSTEP_KERNEL void lockstep_dropout_gradient(float* to, const uint8_t* kept,
                                               const float* gradient, float scale, int64_t n) {
  ForEachElement(n, [=](int64_t i) { to[i] = DropElement(gradient[i], kept[i], scale); });
}
