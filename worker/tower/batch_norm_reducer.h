// The moving statistics of batch normalization over several towers, where they are not the mean:
// each tower's update in turn, or the first tower's alone.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/model/graph.h"
#include "proto/job.pb.h"
#include "worker/device/device.h"
#include "worker/ops/gradient_op.h"
#include "worker/ops/op_table.h"
#include "worker/tower/reduction_streams.h"
#include "worker/tower/tower_reducer.h"
#include "worker/tower/variable_reduction.h"

namespace lockstep::worker {

// Gives all else to another reducer.
class BatchNormReducer : public TowerReducer {
 public:
  // `updates` is EVERY_TOWER or FIRST_TOWER. `streams` and what the ops are made of outlive the
  // reducer.
  static absl::StatusOr<std::unique_ptr<BatchNormReducer>> Create(
      std::unique_ptr<TowerReducer> inner, JobDef::BatchNormUpdates updates,
      const ModelGraph& graph, Device* device, const OpTable& ops, OpContext* context,
      const ReductionStreams* streams);

  absl::StatusOr<TowerGradient> Reduce(int variable, std::span<const TowerGradient> by_tower,
                                       const MutableTensorView& to) override;
  absl::StatusOr<Event*> Finish() override { return inner_->Finish(); }

 private:
  struct Statistic {
    std::unique_ptr<GradientOp> op;              // null: the first tower's alone
    std::optional<VariableReduction> reduction;  // by the op
  };

  BatchNormReducer(std::unique_ptr<TowerReducer> inner, const ReductionStreams* streams)
      : inner_(std::move(inner)), streams_(streams) {}

  const std::unique_ptr<TowerReducer> inner_;
  const ReductionStreams* const streams_;
  std::vector<std::optional<Statistic>> statistics_;  // by variable; none for all else
};

}  // namespace lockstep::worker
