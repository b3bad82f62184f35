#include "tests/sim/gradient.h"

#include "common/base/philox.h"

namespace lockstep::sim {

float GradientOf(WorkerIndex worker, PushSeq push_seq, GlobalStep stamp, uint32_t variable,
                 int64_t element) {
  const uint64_t key = MixSeeds(MixSeeds(worker.value(), push_seq.value()),
                                MixSeeds(static_cast<uint64_t>(stamp.value()), variable));
  return UniformFloat(static_cast<uint32_t>(MixSeeds(key, static_cast<uint64_t>(element)))) - 0.5f;
}

}  // namespace lockstep::sim
