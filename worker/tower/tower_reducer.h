// How the gradients of several towers become one: the mean over them, clipping.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/tensor/tensor.h"
#include "worker/device/stream.h"

namespace lockstep::worker {

// Of one variable: a gradient, or the new value of a statistic. In memory of the device.
struct TowerGradient {
  MutableTensorView view;
  Event* ready = nullptr;    // reached when the view is complete
  TensorView old = {};       // of a statistic: the value that the step began with
  Stream* stream = nullptr;  // on which a reducer has recorded `ready`; null: a tower's

  // Later work of `later` finds the view complete.
  void AwaitOn(Stream* later) const {
    if (stream != later) later->WaitFor(ready);
  }
};

// Enqueues on the streams that it was made for. Used by one thread. Calls allocate nothing once
// they have seen every variable.
class TowerReducer {
 public:
  virtual ~TowerReducer() = default;

  // `by_tower` become one gradient, in `to` or in one of their views; `to` may be the first one's
  // view. Of a step, each variable that is not frozen once, from the last to the first. Where
  // `ready` of the result is null, the gradient is complete with the event of Finish.
  virtual absl::StatusOr<TowerGradient> Reduce(int variable,
                                               std::span<const TowerGradient> by_tower,
                                               const MutableTensorView& to) = 0;
  // Every variable of the step was reduced. Null where Reduce left nothing open.
  virtual absl::StatusOr<Event*> Finish() = 0;
};

}  // namespace lockstep::worker
