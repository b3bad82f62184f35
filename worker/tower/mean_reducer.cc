#include "worker/tower/mean_reducer.h"

#include "common/base/status_macros.h"

namespace lockstep::worker {

absl::StatusOr<std::unique_ptr<MeanReducer>> MeanReducer::Create(const ModelGraph& graph, int count,
                                                                 Device* device, const OpTable& ops,
                                                                 OpContext* context,
                                                                 Stream* stream) {
  std::unique_ptr<MeanReducer> reducer(new MeanReducer(stream));
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
  own.inputs.clear();
  for (const TowerGradient& gradient : by_tower) {
    own.inputs.push_back(gradient.view);
    stream_->WaitFor(gradient.ready);
  }
  own.output = to;
  own.args = {own.inputs, {&own.output, 1}};
  LOCKSTEP_RETURN_IF_ERROR(own.op->Run(own.args, stream_));
  stream_->Record(own.ready.get());
  return TowerGradient{to, own.ready.get()};
}

}  // namespace lockstep::worker
