// From a layer of the model to the op that computes it.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "common/model/graph.h"
#include "worker/ops/loss.h"
#include "worker/ops/op_table.h"
#include "worker/tower/schedule.h"

namespace lockstep::worker {

// Which gradients `options` asks for is set by this function. An error names the layer.
absl::StatusOr<std::unique_ptr<Op>> BuildOp(const ModelGraph& graph, const TowerSchedule& schedule,
                                            const ScheduledOp& op, OpOptions options,
                                            const OpTable& ops, OpContext* context);

// Of a loss layer. An error names it.
absl::StatusOr<std::unique_ptr<Loss>> BuildLoss(const ModelGraph& graph, int node, int64_t batch,
                                                const OpTable& ops, OpContext* context);

}  // namespace lockstep::worker
