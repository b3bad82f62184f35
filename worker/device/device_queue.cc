#include "worker/device/device_queue.h"

#include "common/base/status_macros.h"

namespace lockstep::worker {

absl::StatusOr<DeviceQueue> DeviceQueue::Create(Device* device, const StreamOptions& options) {
  device->MakeCurrent();
  DeviceQueue queue;
  LOCKSTEP_ASSIGN_OR_RETURN(queue.finished_, device->CreateEvent());
  LOCKSTEP_ASSIGN_OR_RETURN(queue.stream_, device->CreateStream(options));
  return queue;
}

absl::StatusOr<std::vector<DeviceQueue>> DeviceQueue::CreateFor(const TowerDevices& devices) {
  std::vector<DeviceQueue> queues;
  for (Device* const device : devices.all()) {
    LOCKSTEP_ASSIGN_OR_RETURN(queues.emplace_back(), Create(device));
  }
  return queues;
}

absl::Status DeviceQueue::Finish() const {
  stream_->Record(finished_.get());
  return finished_->Wait();
}

}  // namespace lockstep::worker
