// The gradient of a simulated tower.
#pragma once

#include <cstdint>

#include "common/base/ids.h"

namespace lockstep::sim {

// `stamp`: of an asynchronous job 0, since its gradients have one for each shard.
float GradientOf(WorkerIndex worker, PushSeq push_seq, GlobalStep stamp, uint32_t variable,
                 int64_t element);

}  // namespace lockstep::sim
