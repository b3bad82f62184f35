// From what a job asks for to the reducer of its gradients.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "common/model/graph.h"
#include "proto/job.pb.h"
#include "worker/device/device.h"
#include "worker/ops/op_table.h"
#include "worker/tower/reduction_streams.h"
#include "worker/tower/tower_reducer.h"

namespace lockstep::worker {

struct ReducerOptions {
  int towers = 1;
  // What the sum of the towers' gradients is divided by, statistics apart; 0: by their number.
  int count = 0;
  JobDef::BatchNormUpdates batch_norm_updates = JobDef::MEAN;
  ReductionStreams::PsDevice ps_device = StrategyDef::ParameterServer::CPU;
  Clipping clipping;
};

// On `streams`, which outlive the reducer, as the rest does. Null where nothing is to be done.
absl::StatusOr<std::unique_ptr<TowerReducer>> MakeReducer(const ReducerOptions& options,
                                                          const ModelGraph& graph, Device* device,
                                                          const OpTable& ops, OpContext* context,
                                                          const ReductionStreams* streams);

}  // namespace lockstep::worker
