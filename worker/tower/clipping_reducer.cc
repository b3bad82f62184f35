#include "worker/tower/clipping_reducer.h"

#include "common/base/status_macros.h"
#include "common/optimizer/clipping.h"

namespace lockstep::worker {

absl::StatusOr<std::unique_ptr<ClippingReducer>> ClippingReducer::Create(
    std::unique_ptr<TowerReducer> inner, const ClippingRule& rule, const ModelGraph& graph,
    Device* device, const OpTable& ops, OpContext* context, Stream* stream) {
  std::unique_ptr<ClippingReducer> reducer(
      new ClippingReducer(std::move(inner), rule.kind == ClippingKind::kGlobalNorm, stream));
  const auto variables = static_cast<int64_t>(graph.variables().size());
  LOCKSTEP_ASSIGN_OR_RETURN(reducer->op_, ops.Make(context, ClippingOptions{rule, variables}));
  LOCKSTEP_ASSIGN_OR_RETURN(reducer->ready_, device->CreateEvent());
  for (const ModelVariable& variable : graph.variables()) {
    Variable& own = reducer->variables_.emplace_back();
    own.trained = variable.trainable && !variable.frozen;
    if (!own.trained) continue;
    LOCKSTEP_ASSIGN_OR_RETURN(own.ready, device->CreateEvent());
  }
  return reducer;
}

absl::StatusOr<TowerGradient> ClippingReducer::Reduce(int variable,
                                                      std::span<const TowerGradient> by_tower,
                                                      const MutableTensorView& to) {
  TowerGradient gradient = by_tower[0];
  if (inner_ != nullptr) {
    LOCKSTEP_ASSIGN_OR_RETURN(gradient, inner_->Reduce(variable, by_tower, to));
  }
  Variable& own = variables_[variable];
  if (!own.trained) return gradient;
  gradient.AwaitOn(stream_);
  own.gradient = gradient.view;
  if (all_together_) return TowerGradient{.view = gradient.view};
  own.args = {{}, {&own.gradient, 1}};
  LOCKSTEP_RETURN_IF_ERROR(op_->Run(own.args, stream_));
  stream_->Record(own.ready.get());
  return TowerGradient{.view = gradient.view, .ready = own.ready.get(), .stream = stream_};
}

absl::StatusOr<Event*> ClippingReducer::Finish() {
  if (!all_together_) return nullptr;
  together_.clear();
  for (const Variable& variable : variables_) {
    if (variable.trained) together_.push_back(variable.gradient);
  }
  if (together_.empty()) return nullptr;
  args_ = {{}, together_};
  LOCKSTEP_RETURN_IF_ERROR(op_->Run(args_, stream_));
  stream_->Record(ready_.get());
  return ready_.get();
}

}  // namespace lockstep::worker
