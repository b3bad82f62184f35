// Sums over devices by copies from one to another, in two halves beside each other: TensorFlow's
// hierarchical copy, to the first device alone.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/device/communicator.h"
#include "worker/device/tower_devices.h"
#include "worker/ops/op_table.h"
#include "worker/tower/sum_on_device.h"

namespace lockstep::worker {

// Of n devices the first of each half, 0 and n / 2 (rounded down), adds copies of the others of its
// half to its own, in their order. Then the first adds what the second has: (x_0 + ... ) +
// (x_(n/2) + ...). Calls allocate nothing once they have seen every place of values.
class HierarchicalCopy final : public Communicator {
 public:
  // Of at least two devices, which outlive it, as `ops` does.
  static absl::StatusOr<std::unique_ptr<HierarchicalCopy>> Create(const TowerDevices& devices,
                                                                  const OpTable& ops);

  // The first device of the second half of so many: it copies from those behind it.
  static size_t SecondMain(size_t devices) { return devices / 2; }

  std::string name() const override { return "hierarchical_copy"; }
  absl::Status Reserve(size_t bytes) override;
  absl::Status ReduceToFirst(std::span<const MutableTensorView> by_device,
                             std::span<Stream* const> streams) override;
  // A device waits for those behind it alone, so the last is waited for first.
  absl::Status Await(std::span<Event* const> by_device) override;
  // Nothing to end: a copy does not wait for its source to take part.
  void Abort(const absl::Status&) override {}

 private:
  // A sum that one device makes: of its own values and copies of others'.
  struct Sum {
    size_t main = 0;
    std::vector<size_t> others;
    std::vector<DeviceBuffer> copies;  // of the others, on the main device
  };
  static constexpr size_t kSums = 3;  // of the halves, then of both
  using Calls = std::array<SumOnDevice::Call, kSums>;

  explicit HierarchicalCopy(const TowerDevices& devices) : devices_(devices) {}
  absl::Status Prepare(const OpTable& ops);
  absl::Status Add(size_t sum, std::span<const MutableTensorView> by_device,
                   std::span<Stream* const> streams, SumOnDevice::Call* call);

  const TowerDevices devices_;
  std::array<Sum, kSums> sums_;
  std::vector<SumOnDevice> on_main_;           // of sums_, likewise
  size_t reserved_ = 0;                        // bytes of each copy
  std::vector<std::unique_ptr<Event>> there_;  // by device: what it gives
  std::map<const void*, Calls> calls_;         // by place of the first device's values
};

}  // namespace lockstep::worker
