#include "worker/tower/variable_reduction.h"

#include "common/base/status_macros.h"

namespace lockstep::worker {

absl::StatusOr<TowerGradient> VariableReduction::Enqueue(const TensorView* first,
                                                         std::span<const TowerGradient> by_tower,
                                                         const MutableTensorView& to,
                                                         Stream* stream) {
  inputs_.clear();
  if (first != nullptr) inputs_.push_back(*first);
  for (const TowerGradient& gradient : by_tower) {
    inputs_.push_back(gradient.view);
    gradient.AwaitOn(stream);
  }
  output_ = to;
  args_ = {inputs_, {&output_, 1}};
  LOCKSTEP_RETURN_IF_ERROR(op_->Run(args_, stream));
  stream->Record(ready_.get());
  return TowerGradient{.view = to, .ready = ready_.get(), .stream = stream};
}

}  // namespace lockstep::worker
