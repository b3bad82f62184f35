#include "worker/tower/mean_reducer.h"

#include "common/base/status_macros.h"

namespace lockstep::worker {

absl::StatusOr<std::unique_ptr<MeanReducer>> MeanReducer::Create(const ModelGraph& graph, int count,
                                                                 Device* device, const OpTable& ops,
                                                                 OpContext* context,
                                                                 const ReductionStreams* streams) {
  std::unique_ptr<MeanReducer> reducer(new MeanReducer(streams));
  LOCKSTEP_ASSIGN_OR_RETURN(reducer->of_gradients_, ops.Make(context, MeanOptions{count}));
  LOCKSTEP_ASSIGN_OR_RETURN(reducer->of_statistics_, ops.Make(context, MeanOptions()));
  for (const ModelVariable& variable : graph.variables()) {
    Variable& own = reducer->variables_.emplace_back();
    if (variable.frozen) continue;
    own.op = (variable.trainable ? reducer->of_gradients_ : reducer->of_statistics_).get();
    LOCKSTEP_ASSIGN_OR_RETURN(own.ready, device->CreateEvent());
  }
  return reducer;
}

absl::StatusOr<TowerGradient> MeanReducer::Reduce(int variable,
                                                  std::span<const TowerGradient> by_tower,
                                                  const MutableTensorView& to) {
  Variable& own = variables_[variable];
  Stream* const stream = streams_->of(variable);
  own.inputs.clear();
  for (const TowerGradient& gradient : by_tower) {
    own.inputs.push_back(gradient.view);
    gradient.AwaitOn(stream);
  }
  own.output = to;
  own.args = {own.inputs, {&own.output, 1}};
  LOCKSTEP_RETURN_IF_ERROR(own.op->Run(own.args, stream));
  stream->Record(own.ready.get());
  return TowerGradient{.view = to, .ready = own.ready.get(), .stream = stream};
}

}  // namespace lockstep::worker
