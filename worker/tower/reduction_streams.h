// Where the towers of one worker are merged: on the host, or each variable on one of the towers.
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

// The tower of each variable: in the order of the model, that with the fewest elements so far, of
// equal ones the first (tensorpack's LeastLoadedDeviceSetter). Frozen variables count nothing.
std::vector<int> LeastLoadedTowers(const ModelGraph& graph, int towers);

// Used by one thread.
class ReductionStreams {
 public:
  using PsDevice = StrategyDef::ParameterServer::PsDevice;

  // CPU: one stream, whose work runs on the thread that waits for it if the device is a CPU. GPU:
  // one more per tower, which starts by itself. The device outlives the streams.
  static absl::StatusOr<std::unique_ptr<ReductionStreams>> Create(PsDevice place, int towers,
                                                                  const ModelGraph& graph,
                                                                  Device* device);

  // For what concerns several variables.
  Stream* common() const { return queues_[0].stream(); }
  // For what concerns one.
  Stream* of(int variable) const { return by_variable_[variable]; }

  // Blocks until all work has ended. The device's status().
  absl::Status Finish();

 private:
  std::vector<DeviceQueue> queues_;  // the common one first
  std::vector<Stream*> by_variable_;
};

}  // namespace lockstep::worker
