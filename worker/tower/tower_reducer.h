// TowerReducer turns the gradients of several towers into one: the mean over them, clipping.
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

  // Makes later work of `later` wait until the view is complete.
  void AwaitOn(Stream* later) const {
    if (stream != later) later->WaitFor(ready);
  }
};

// Enqueues on the streams that it was made for. Used by one thread. Calls allocate nothing once
// they have seen every variable.
class TowerReducer {
 public:
  virtual ~TowerReducer() = default;

  // Turns `by_tower` into one gradient, in `to` or in one of their views. `to` may be the first
  // one's view. Called once in a step for each variable that is not frozen, from the last to the
  // first. If `ready` of the result is null, the gradient is complete with the event of Finish.
  virtual absl::StatusOr<TowerGradient> Reduce(int variable,
                                               std::span<const TowerGradient> by_tower,
                                               const MutableTensorView& to) = 0;
  // Called when every variable of the step was reduced. Null if Reduce left nothing open.
  virtual absl::StatusOr<Event*> Finish() = 0;
};

}  // namespace lockstep::worker
