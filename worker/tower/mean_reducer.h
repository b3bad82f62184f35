// The mean over towers: their sum in the order of the towers, times 1 / count.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "common/model/graph.h"
#include "worker/device/device.h"
#include "worker/ops/gradient_op.h"
#include "worker/ops/op_table.h"
#include "worker/tower/reduction_streams.h"
#include "worker/tower/tower_reducer.h"
#include "worker/tower/variable_reduction.h"

namespace lockstep::worker {

class MeanReducer : public TowerReducer {
 public:
  // `count` is that of gradients of trained variables; statistics are divided by their number.
  // `streams` and what the ops are made of outlive the reducer.
  static absl::StatusOr<std::unique_ptr<MeanReducer>> Create(const ModelGraph& graph, int count,
                                                             Device* device, const OpTable& ops,
                                                             OpContext* context,
                                                             const ReductionStreams* streams);

  absl::StatusOr<TowerGradient> Reduce(int variable, std::span<const TowerGradient> by_tower,
                                       const MutableTensorView& to) override;
  absl::StatusOr<Event*> Finish() override { return nullptr; }

 private:
  explicit MeanReducer(const ReductionStreams* streams) : streams_(streams) {}

  const ReductionStreams* const streams_;
  std::unique_ptr<GradientOp> of_gradients_;
  std::unique_ptr<GradientOp> of_statistics_;
  std::vector<std::optional<VariableReduction>> variables_;  // none for frozen ones
};

}  // namespace lockstep::worker
