// A stream whose end the host waits for.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/device/device.h"
#include "worker/device/tower_devices.h"

namespace lockstep::worker {

// Used by one thread at a time. Its device outlives it.
class DeviceQueue {
 public:
  static absl::StatusOr<DeviceQueue> Create(Device* device, const StreamOptions& options = {});
  // One for each device.
  static absl::StatusOr<std::vector<DeviceQueue>> CreateFor(const TowerDevices& devices);

  Stream* stream() const { return stream_.get(); }
  // Blocks until all that was enqueued is done. The device's status().
  absl::Status Finish() const;

 private:
  std::unique_ptr<Event> finished_;
  std::unique_ptr<Stream> stream_;  // last: uses the event
};

}  // namespace lockstep::worker
