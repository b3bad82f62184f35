// Values of 16 bits between the layers that have ops for them.
#pragma once

#include "common/model/graph.h"
#include "common/tensor/dtype.h"
#include "worker/tower/schedule.h"

namespace lockstep::worker {

// The same schedule with values of `type`, kFloat32 or kBFloat16, between layers whose ops take
// these; with casts where other layers, losses and the batch's inputs begin. A value is cast once
// for all its readers.
TowerSchedule WithActivations(const ModelGraph& graph, TowerSchedule schedule, DType type);

}  // namespace lockstep::worker
