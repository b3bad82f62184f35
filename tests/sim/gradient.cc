#include "tests/sim/gradient.h"

#include "common/base/philox.h"

namespace lockstep::sim {

float GradientOf(WorkerIndex worker, PushSeq push_seq, GlobalStep stamp, uint32_t variable,
                 int64_t element) {
  const uint64_t key = MixSeeds(MixSeeds(worker.value(), push_seq.value()),
                                MixSeeds(static_cast<uint64_t>(stamp.value()), variable));
  return UniformFloat(static_cast<uint32_t>(MixSeeds(key, static_cast<uint64_t>(element)))) - 0.5f;
}

float GradientOf(const ReplicaShare& share, GlobalStep stamp, uint32_t variable, int64_t element) {
  return GradientOf(WorkerIndex(share.position), PushSeq(share.total), stamp, variable, element);
}

std::vector<int64_t> RowsOf(WorkerIndex worker, GlobalStep step, uint32_t variable,
                            int64_t num_rows) {
  const uint64_t key =
      MixSeeds(worker.value(), MixSeeds(static_cast<uint64_t>(step.value()), variable));
  std::vector<int64_t> rows;
  for (int64_t row = 0; row < num_rows; ++row) {
    if (MixSeeds(key, static_cast<uint64_t>(row)) % 2 == 0) rows.push_back(row);
  }
  return rows;
}

}  // namespace lockstep::sim
