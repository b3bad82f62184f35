#include "worker/tower/batch_norm_reducer.h"

#include <utility>

#include "common/base/status_macros.h"

namespace lockstep::worker {

absl::StatusOr<std::unique_ptr<BatchNormReducer>> BatchNormReducer::Create(
    std::unique_ptr<TowerReducer> inner, JobDef::BatchNormUpdates updates, const ModelGraph& graph,
    Device* device, const OpTable& ops, OpContext* context, Stream* stream) {
  std::unique_ptr<BatchNormReducer> reducer(new BatchNormReducer(std::move(inner), stream));
  reducer->statistics_.resize(graph.variables().size());
  for (const ModelNode& node : graph.nodes()) {
    if (!node.layer.has_batch_norm()) continue;
    for (const int variable : node.variables) {
      if (graph.variables()[variable].trainable || graph.variables()[variable].frozen) continue;
      Statistic& own = reducer->statistics_[variable].emplace();
      if (updates == JobDef::FIRST_TOWER) continue;
      const MovingAverageOptions options{node.layer.batch_norm().momentum()};
      LOCKSTEP_ASSIGN_OR_RETURN(own.op, ops.Make(context, options));
      LOCKSTEP_ASSIGN_OR_RETURN(own.ready, device->CreateEvent());
    }
  }
  return reducer;
}

absl::StatusOr<TowerGradient> BatchNormReducer::Reduce(int variable,
                                                       std::span<const TowerGradient> by_tower,
                                                       const MutableTensorView& to) {
  if (!statistics_[variable].has_value()) return inner_->Reduce(variable, by_tower, to);
  Statistic& own = *statistics_[variable];
  if (own.op == nullptr) return by_tower[0];
  own.inputs.clear();
  own.inputs.push_back(by_tower[0].old);
  for (const TowerGradient& update : by_tower) {
    own.inputs.push_back(update.view);
    stream_->WaitFor(update.ready);
  }
  own.output = to;
  own.args = {own.inputs, {&own.output, 1}};
  LOCKSTEP_RETURN_IF_ERROR(own.op->Run(own.args, stream_));
  stream_->Record(own.ready.get());
  return TowerGradient{to, own.ready.get()};
}

}  // namespace lockstep::worker
