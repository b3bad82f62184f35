#include "common/base/mix_seeds.h"
#include "common/base/philox_block.h"
#include "worker/ops/cuda/element_loop.cuh"
#include "worker/ops/cuda/noise.cuh"
#include "worker/ops/noise_element.h"

using lockstep::MixSeeds;
using lockstep::PhiloxBlock;
using lockstep::PhiloxNumbers;
using lockstep::worker::kNoisePerBlock;
using lockstep::worker::NormalOf;
using lockstep::worker::NormalPair;
using lockstep::worker::cuda::ForEachElement;

LOCKSTEP_KERNEL void lockstep_noise(float* to, const uint64_t* random_key, uint64_t purpose,
                                    int64_t n) {
  const uint64_t key = MixSeeds(*random_key, purpose);
  ForEachElement((n + kNoisePerBlock - 1) / kNoisePerBlock, [=](int64_t block) {
    const PhiloxNumbers numbers = PhiloxBlock(key, static_cast<uint64_t>(block), /*lane=*/0);
    LOCKSTEP_NO_UNROLL
    for (int64_t i = 0; i < kNoisePerBlock; i += 2) {
      const NormalPair pair = NormalOf(numbers.at[i], numbers.at[i + 1]);
      const int64_t at = block * kNoisePerBlock + i;
      if (at < n) to[at] = pair.at[0];
      if (at + 1 < n) to[at + 1] = pair.at[1];
    }
  });
}
