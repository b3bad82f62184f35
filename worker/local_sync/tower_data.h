// Rows that stay in the towers' memory from one load to the next: part k of each array in the
// memory of tower k.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/local_sync/load_plan.h"
#include "common/tensor/tensor.h"
#include "worker/device/device.h"
#include "worker/device/device_queue.h"
#include "worker/device/tower_devices.h"

namespace lockstep::worker {

// Not thread-safe.
class TowerData {
 public:
  // The devices outlive the data.
  static absl::StatusOr<std::unique_ptr<TowerData>> Create(const TowerDevices& devices,
                                                           int64_t towers);

  // Takes memory of the devices for loads that have so many bytes in each tower, their arrays
  // aligned. RESOURCE_EXHAUSTED naming the tower. Does nothing on a host device.
  absl::Status Reserve(size_t bytes);

  // Replaces what was loaded by the rows of these arrays that the plan keeps. On a host device the
  // arrays are used where they are, until the next Load; elsewhere they have been copied when this
  // returns. No work of a tower may read the rows that go. Takes memory of a device only for more
  // rows than were reserved and than any load before has had. After an error nothing is loaded.
  absl::Status Load(const LoadPlan& plan, std::span<const TensorView> inputs,
                    std::span<const TensorView> state_inputs);

  // Rows of a tower's part of an array: inputs first, then states. In memory of the
  // tower's device.
  TensorView Rows(int64_t tower, size_t array, const RowSpan& rows) const;

  // What all loads have given the towers.
  uint64_t bytes_to_towers() const { return bytes_to_towers_; }

 private:
  struct Part {
    std::vector<TensorView> arrays;
    DeviceBuffer memory;  // null on a host device; stays for the next load
    size_t bytes = 0;     // of it
  };

  TowerData(const TowerDevices& devices, std::vector<DeviceQueue> queues, int64_t towers)
      : devices_(devices), parts_(towers), queues_(std::move(queues)) {}
  // Enqueues the copies.
  absl::Status LoadPart(size_t tower, const LoadPlan& plan, std::span<const TensorView> inputs,
                        std::span<const TensorView> state_inputs);
  // Has memory of its device for so many bytes of a tower's part.
  absl::Status MakeRoom(size_t tower, size_t bytes);
  // Moves a tower's part from the host to memory of its device.
  absl::Status CopyToDevice(size_t tower, Part* part);

  const TowerDevices devices_;
  std::vector<Part> parts_;  // by tower
  uint64_t bytes_to_towers_ = 0;
  const std::vector<DeviceQueue> queues_;  // by device; last: uses all above
};

}  // namespace lockstep::worker
