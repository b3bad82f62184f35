// The data and the gradient of a simulated tower.
#pragma once

#include <cstdint>
#include <vector>

#include "common/base/ids.h"
#include "common/replicas/replica_view.h"

namespace lockstep::sim {

// `stamp`: of an asynchronous job 0, since its gradients have one for each shard.
float GradientOf(WorkerIndex worker, PushSeq push_seq, GlobalStep stamp, uint32_t variable,
                 int64_t element);

// Of a job whose workers come and go: whichever replica has this share of the step.
float GradientOf(const ReplicaShare& share, GlobalStep stamp, uint32_t variable, int64_t element);

// The rows of a table that the data of this step has, ascending: some of them, perhaps none.
std::vector<int64_t> RowsOf(WorkerIndex worker, GlobalStep step, uint32_t variable,
                            int64_t num_rows);

}  // namespace lockstep::sim
