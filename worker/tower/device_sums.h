// The sums of gradients over towers on several devices, by a communicator: on each device over its
// towers in their order, then over the devices.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/model/graph.h"
#include "worker/device/communicator.h"
#include "worker/device/device_queue.h"
#include "worker/device/tower_devices.h"
#include "worker/ops/op_table.h"
#include "worker/tower/sum_on_device.h"
#include "worker/tower/tower_reducer.h"

namespace lockstep::worker {

// Used by one thread. Takes part on a stream of its own on each device, beside the backward passes.
// Calls allocate nothing once they have seen every variable.
class DeviceSums {
 public:
  // For at least as many towers as there are devices, which have a communicator; they and `ops`
  // outlive the sums.
  static absl::StatusOr<std::unique_ptr<DeviceSums>> Create(const ModelGraph& graph, size_t towers,
                                                            const TowerDevices& devices,
                                                            const OpTable& ops);

  // Those of trained dense variables. Rows of tables and statistics are not.
  bool has(int variable) const { return !variables_[static_cast<size_t>(variable)].ranks.empty(); }
  // Enqueues the sum of `by_tower`, once they are ready; it is in the view of the first, and those
  // of the others are lost. Of a step, each variable once, in one order.
  absl::StatusOr<TowerGradient> Enqueue(int variable, std::span<const TowerGradient> by_tower);
  // Blocks until the sum is there. Where a device has failed: its status(), while others still wait
  // for it.
  absl::Status Await(int variable);
  // As Communicator::Abort: before Finish, after an error of any kind.
  void Abort(const absl::Status& step) { devices_.communicator()->Abort(step); }
  // Blocks until nothing that was enqueued runs. The status() of a device.
  absl::Status Finish();

 private:
  // What a device does for one variable.
  struct Rank {
    SumOnDevice::Call call;  // over its towers
    std::unique_ptr<Event> passed;
  };
  struct Variable {
    std::vector<Rank> ranks;     // by device; none: not summed here
    std::vector<Event*> passed;  // of these
  };

  explicit DeviceSums(const TowerDevices& devices) : devices_(devices) {}
  absl::Status Prepare(const ModelGraph& graph, size_t towers, const OpTable& ops);
  absl::Status SumTowersOf(size_t device, std::span<const TowerGradient> by_tower, Rank* rank);

  const TowerDevices devices_;
  std::vector<SumOnDevice> sums_;  // by device, of those that have several towers: the first ones
  std::vector<Variable> variables_;
  std::vector<MutableTensorView> by_device_;  // of the variable at hand
  std::vector<Stream*> streams_;              // by device
  std::vector<DeviceQueue> queues_;           // likewise; last: use all above
};

}  // namespace lockstep::worker
