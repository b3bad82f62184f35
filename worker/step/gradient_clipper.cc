#include "worker/step/gradient_clipper.h"

#include <algorithm>

#include "common/optimizer/clipping.h"

namespace lockstep::worker {

void GradientClipper::Ready(int variable, MutableTensorView gradient) {
  if (layout_.variables()[variable].trainable) {
    switch (clipping_.kind_case()) {
      case Clipping::kValue:
        ClipByValue(-clipping_.value(), clipping_.value(), gradient);
        break;
      case Clipping::kNorm:
        ClipByNorm(clipping_.norm(), gradient);
        break;
      case Clipping::kGlobalNorm:
        held_.push_back({variable, gradient});
        return;
      case Clipping::KIND_NOT_SET:
        break;
    }
  }
  send_(variable);
}

void GradientClipper::Finish() {
  if (held_.empty()) return;
  // They came in the order of the backward pass. The sum is taken in the order of the variables.
  std::vector<Held> ordered = held_;
  std::ranges::sort(ordered, {}, &Held::variable);
  std::vector<MutableTensorView> gradients;
  for (const Held& held : ordered) gradients.push_back(held.gradient);
  ClipByGlobalNorm(clipping_.global_norm(), gradients);
  for (const Held& held : held_) send_(held.variable);
  held_.clear();
}

}  // namespace lockstep::worker
