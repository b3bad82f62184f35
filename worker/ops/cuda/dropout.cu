#include "common/base/mix_seeds.h"
#include "common/base/philox_block.h"
#include "worker/ops/cuda/dropout.cuh"
#include "worker/ops/cuda/element_loop.cuh"
#include "worker/ops/dropout_element.h"

using lockstep::BFloat16;
using lockstep::MixSeeds;
using lockstep::PhiloxBlock;
using lockstep::PhiloxNumbers;
using lockstep::worker::DropElement;
using lockstep::worker::kDropoutPerBlock;
using lockstep::worker::KeepsElement;
using lockstep::worker::cuda::AreAligned;
using lockstep::worker::cuda::ForEachElement;
using lockstep::worker::cuda::kLanes;
using lockstep::worker::cuda::Lanes;
using lockstep::worker::cuda::Load;
using lockstep::worker::cuda::MapElements;
using lockstep::worker::cuda::Store;
using lockstep::worker::cuda::Wide;

namespace {

template <typename T>
LOCKSTEP_DEVICE void Drop(T* y, uint8_t* kept, const T* x, const uint64_t* random_key,
                          uint64_t purpose, float rate, float scale, int64_t n) {
  static_assert(kLanes == kDropoutPerBlock);
  const uint64_t key = MixSeeds(*random_key, purpose);
  const bool is_aligned = AreAligned(y, x, kept);
  ForEachElement((n + kLanes - 1) / kLanes, [=](int64_t block) {
    const PhiloxNumbers numbers = PhiloxBlock(key, static_cast<uint64_t>(block), /*lane=*/0);
    const int64_t first = block * kLanes;
    if (is_aligned && first + kLanes <= n) {
      const auto values = Load(x, first);
      Lanes<uint8_t> keeps;
      Lanes<T> dropped;
      LOCKSTEP_UNROLL
      for (int lane = 0; lane < kLanes; ++lane) {
        keeps.at[lane] = KeepsElement(numbers.at[lane], rate);
        dropped.at[lane] =
            static_cast<T>(DropElement(Wide(values.at[lane]), keeps.at[lane], scale));
      }
      Store(kept, first, keeps);
      Store(y, first, dropped);
      return;
    }
    for (int64_t i = first; i < n && i < first + kLanes; ++i) {
      kept[i] = KeepsElement(numbers.at[i - first], rate);
      y[i] = static_cast<T>(DropElement(Wide(x[i]), kept[i], scale));
    }
  });
}

template <typename T>
LOCKSTEP_DEVICE void DropGradient(T* to, const uint8_t* kept, const T* gradient, float scale,
                                  int64_t n) {
  MapElements(
      to, n, [=](float value, uint8_t keeps) { return DropElement(value, keeps, scale); }, gradient,
      kept);
}

}  // namespace

LOCKSTEP_KERNEL void lockstep_dropout(float* y, uint8_t* kept, const float* x,
                                      const uint64_t* random_key, uint64_t purpose, float rate,
                                      float scale, int64_t n) {
  Drop(y, kept, x, random_key, purpose, rate, scale, n);
}
LOCKSTEP_KERNEL void lockstep_dropout_bf16(BFloat16* y, uint8_t* kept, const BFloat16* x,
                                           const uint64_t* random_key, uint64_t purpose, float rate,
                                           float scale, int64_t n) {
  Drop(y, kept, x, random_key, purpose, rate, scale, n);
}

LOCKSTEP_KERNEL void lockstep_dropout_gradient(float* to, const uint8_t* kept,
                                               const float* gradient, float scale, int64_t n) {
  DropGradient(to, kept, gradient, scale, n);
}
LOCKSTEP_KERNEL void lockstep_dropout_gradient_bf16(BFloat16* to, const uint8_t* kept,
                                                    const BFloat16* gradient, float scale,
                                                    int64_t n) {
  DropGradient(to, kept, gradient, scale, n);
}
