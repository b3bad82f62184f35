// Looks after a GPU while it is used: how busy NVML says that it is, when its hardware fails, and
// whether a process ends whose GPU has failed.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/monotonic_wait.h"
#include "worker/device/cuda/nvml_library.h"

namespace lockstep::worker::cuda {

// All are called on the monitor's thread.
struct GpuMonitorOptions {
  std::string name;  // "cuda:0"
  // The hardware has failed: "Xid 79". has_failed is true afterwards.
  std::function<void(const std::string& what)> on_failure;
  // Whether the GPU has an error, found by the monitor or by the driver.
  std::function<bool()> has_failed;
  // What waits for a GPU that has failed may never return: called where the monitor still exists
  // `grace` after that.
  std::function<void()> on_stuck;
  absl::Duration grace = absl::Seconds(10);
};

// Thread-safe.
class GpuMonitor {
 public:
  // Of the GPU with this address ("0000:65:00.0"). `nvml` outlives it; null: there is none. What
  // NVML refuses to tell is not known: a line in the log says so.
  GpuMonitor(const NvmlLibrary* nvml, const std::string& pci_bus_id, GpuMonitorOptions options);
  // Blocks for one look, a fifth of a second, and for callbacks.
  ~GpuMonitor();

  // Percent of the last moments in which a kernel ran, of any process; nullopt: not known.
  std::optional<int> utilization() const;

 private:
  absl::Status OpenDevice(const std::string& pci_bus_id);
  absl::Status OpenEvents();
  // The monitor's thread.
  void Watch();
  void CheckDevice();
  void SampleUtilization();
  // Of the next event; empty: there was none, or it is not one of the hardware.
  absl::StatusOr<std::string> NextFailure() const;

  const NvmlLibrary* const nvml_;
  const GpuMonitorOptions options_;
  NvmlDeviceHandle device_ = nullptr;  // null: NVML does not know it
  NvmlEventSet events_ = nullptr;      // null: NVML tells of none
  std::atomic<int> utilization_ = -1;  // -1: not known
  MonotonicNotification stop_;
  std::thread thread_;  // last: uses all above
};

}  // namespace lockstep::worker::cuda
