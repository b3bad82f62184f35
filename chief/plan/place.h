// The variables of a model as ps and workers are told them.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "chief/placement/assign.h"
#include "common/model/graph.h"
#include "proto/job.pb.h"
#include "proto/tensor.pb.h"

namespace lockstep::chief {

// Ids count in the order of the forward pass; the loss is last and on shard 0. A variable of more
// than `max_part_bytes`, which is positive, is there in parts of its rows, one after the other:
// "table#0", "table#1", ... Statistics are never split. INVALID_ARGUMENT naming a variable that
// would be split into more parts than can be hosted, or the field of `strategy` that names a
// variable or a ps that does not exist.
absl::StatusOr<Placement> Place(const ModelGraph& graph, uint32_t shards, int64_t max_part_bytes,
                                const StrategyDef::ParameterServer& strategy);

// The workers keep every variable that is not frozen, but the loss (strategy replicated).
void LeaveToWorkers(Placement* placement);

Balance BalanceOf(const Placement& placement);

}  // namespace lockstep::chief
