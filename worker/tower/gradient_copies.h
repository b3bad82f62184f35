// Copies of gradients from a device to the memory of the host, one event for each variable.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/tensor/tensor.h"
#include "worker/device/device.h"
#include "worker/device/stream.h"
#include "worker/tower/tower.h"

namespace lockstep::worker {

// Used by one thread. The device outlives it.
class GradientCopies {
 public:
  static absl::StatusOr<GradientCopies> Create(size_t variables, Device* device);

  // Enqueues on `stream` the copy of `gradient` to `host`, once it is ready. `gradient->ready` then
  // is the event of the copy. Does nothing where the gradient is in `host` itself.
  void Enqueue(int variable, const MutableTensorView& host, Stream* stream,
               TowerGradient* gradient);

 private:
  std::vector<std::unique_ptr<Event>> copied_;  // by variable
};

}  // namespace lockstep::worker
