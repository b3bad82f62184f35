// The gradients of a tower on another device, in memory of the device that reduces them.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/model/graph.h"
#include "worker/device/device.h"
#include "worker/device/device_queue.h"
#include "worker/tower/staging.h"
#include "worker/tower/tower_reducer.h"

namespace lockstep::worker {

// Used by one thread. Copies on a stream of its own, beside the backward passes. Calls allocate
// nothing.
class PeerGradients {
 public:
  // Of steps with tables' rows of at most so many examples. `is_copied` says of which variables; of
  // frozen ones it is not asked. `device`, which reduces, outlives it.
  static absl::StatusOr<std::unique_ptr<PeerGradients>> Create(
      const ModelGraph& graph, int64_t row_examples, absl::FunctionRef<bool(int)> is_copied,
      Device* device);

  // Of a variable that is copied. Enqueues the copy of `gradient` once it is ready; it then is the
  // copy. Of a step, each variable once: the next step overwrites it.
  absl::Status Enqueue(int variable, TowerGradient* gradient);
  // Blocks until no copy runs. The device's status().
  absl::Status Finish() const { return queue_.Finish(); }

 private:
  PeerGradients(Device* device, DeviceQueue queue) : staging_(device), queue_(std::move(queue)) {}

  Staging staging_;
  std::vector<int> places_;                     // by variable
  std::vector<std::unique_ptr<Event>> copied_;  // likewise
  const DeviceQueue queue_;                     // last: uses all above
};

}  // namespace lockstep::worker
