#include "worker/tower/mean_reducer.h"

#include <utility>

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
    std::optional<VariableReduction>& own = reducer->variables_.emplace_back();
    if (variable.frozen) continue;
    LOCKSTEP_ASSIGN_OR_RETURN(std::unique_ptr<Event> ready, device->CreateEvent());
    own.emplace((variable.trainable ? reducer->of_gradients_ : reducer->of_statistics_).get(),
                std::move(ready));
  }
  return reducer;
}

absl::StatusOr<TowerGradient> MeanReducer::Reduce(int variable,
                                                  std::span<const TowerGradient> by_tower,
                                                  const MutableTensorView& to) {
  return variables_[variable]->Enqueue(nullptr, by_tower, to, streams_->of(variable));
}

}  // namespace lockstep::worker
