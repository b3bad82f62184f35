#include "worker/tower/batch_norm_reducer.h"

#include <utility>

#include "common/base/status_macros.h"

namespace lockstep::worker {

absl::StatusOr<std::unique_ptr<BatchNormReducer>> BatchNormReducer::Create(
    std::unique_ptr<TowerReducer> inner, JobDef::BatchNormUpdates updates, const ModelGraph& graph,
    Device* device, const OpTable& ops, OpContext* context, const ReductionStreams* streams) {
  std::unique_ptr<BatchNormReducer> reducer(new BatchNormReducer(std::move(inner), streams));
  reducer->statistics_.resize(graph.variables().size());
  for (const ModelNode& node : graph.nodes()) {
    if (!node.layer.has_batch_norm()) continue;
    for (const int variable : node.variables) {
      if (graph.variables()[variable].trainable || graph.variables()[variable].frozen) continue;
      Statistic& own = reducer->statistics_[variable].emplace();
      if (updates == JobDef::FIRST_TOWER) continue;
      const MovingAverageOptions options{node.layer.batch_norm().momentum()};
      LOCKSTEP_ASSIGN_OR_RETURN(own.op, ops.Make(context, options));
      LOCKSTEP_ASSIGN_OR_RETURN(std::unique_ptr<Event> ready, device->CreateEvent());
      own.reduction.emplace(own.op.get(), std::move(ready));
    }
  }
  return reducer;
}

absl::StatusOr<TowerGradient> BatchNormReducer::Reduce(int variable,
                                                       std::span<const TowerGradient> by_tower,
                                                       const MutableTensorView& to) {
  if (!statistics_[variable].has_value()) return inner_->Reduce(variable, by_tower, to);
  Statistic& own = *statistics_[variable];
  if (!own.reduction.has_value()) return by_tower[0];
  return own.reduction->Enqueue(&by_tower[0].old, by_tower, to, streams_->of(variable));
}

}  // namespace lockstep::worker
