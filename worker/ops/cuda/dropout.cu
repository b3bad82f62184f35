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
using lockstep::worker::cuda::Map;
using lockstep::worker::cuda::MapElements;

LOCKSTEP_KERNEL void lockstep_dropout(float* y, uint8_t* kept, const float* x, uint64_t key,
                                      float rate, float scale, int64_t n) {
  ForEachElement((n + kDropoutPerBlock - 1) / kDropoutPerBlock, [=](int64_t block) {
    const PhiloxNumbers numbers = PhiloxBlock(key, static_cast<uint64_t>(block), /*lane=*/0);
    const int64_t first = block * kDropoutPerBlock;
    const int64_t left = n - first;
    const auto at = [=](int64_t number) { return first + number; };
    const int64_t count = left < kDropoutPerBlock ? left : kDropoutPerBlock;
    Map(count, at, y, [=](int64_t i) {
      const bool keeps = KeepsElement(numbers.at[i - first], rate);
      kept[i] = keeps;
      return DropElement(x[i], keeps, scale);
    });
  });
}

LOCKSTEP_KERNEL void lockstep_dropout_gradient(float* to, const uint8_t* kept,
                                               const float* gradient, float scale, int64_t n) {
  MapElements(to, n, [=](int64_t i) { return DropElement(gradient[i], kept[i], scale); });
}
