// ReductionStreams holds the streams that merge the gradients of one worker's towers. They are
// merged on the host, or each variable on one of the towers.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/model/graph.h"
#include "proto/job.pb.h"
#include "worker/device/device.h"
#include "worker/device/device_queue.h"
#include "worker/device/stream.h"

namespace lockstep::worker {

// Returns the tower of each variable, chosen in the order of the model: the tower with the fewest
// elements so far; of equal ones, the first (tensorpack's LeastLoadedDeviceSetter). Frozen
// variables do not count.
std::vector<int> LeastLoadedTowers(const ModelGraph& graph, int towers);

// Used by one thread.
class ReductionStreams {
 public:
  using PsDevice = StrategyDef::ParameterServer::PsDevice;

  // CPU: one stream. On a CPU device its work runs on the thread that waits for it. GPU: one more
  // per tower, whose work starts by itself. The device outlives the streams.
  static absl::StatusOr<std::unique_ptr<ReductionStreams>> Create(PsDevice place, int towers,
                                                                  const ModelGraph& graph,
                                                                  Device* device);

  // For work on several variables.
  Stream* common() const { return queues_[0].stream(); }
  // For work on one variable.
  Stream* of(int variable) const { return by_variable_[variable]; }

  // Blocks until all work has ended. Returns the device's status().
  absl::Status Finish();

 private:
  std::vector<DeviceQueue> queues_;  // the common one first
  std::vector<Stream*> by_variable_;
};

}  // namespace lockstep::worker
