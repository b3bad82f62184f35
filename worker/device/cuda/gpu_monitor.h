// What NVML says of a GPU beside the driver: how busy it is, and when its hardware fails.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/monotonic_wait.h"
#include "worker/device/cuda/nvml_library.h"

namespace lockstep::worker::cuda {

struct GpuMonitorOptions {
  // What has failed: "Xid 79". Called once at most, on the monitor's thread.
  std::function<void(const std::string& what)> on_failure;
  // A thread that waits for a GPU that is lost may never return. Called on the monitor's thread
  // where the monitor still exists after this time.
  std::function<void()> on_stuck;
  absl::Duration grace = absl::Seconds(10);
};

// Thread-safe.
class GpuMonitor {
 public:
  // Of the GPU with this address ("0000:65:00.0"). `nvml` outlives it. Errors are NVML's.
  static absl::StatusOr<std::unique_ptr<GpuMonitor>> Start(const NvmlLibrary* nvml,
                                                           const std::string& pci_bus_id,
                                                           GpuMonitorOptions options);
  // Blocks for as long as NVML takes for one look, a fifth of a second, and for callbacks.
  ~GpuMonitor();

  // Percent of the last moments in which a kernel ran, of any process; nullopt: NVML does not say.
  std::optional<int> utilization() const;

 private:
  GpuMonitor(const NvmlLibrary* nvml, GpuMonitorOptions options)
      : nvml_(nvml), options_(std::move(options)) {}

  absl::Status Open(const std::string& pci_bus_id);
  // The monitor's thread.
  void Watch();
  // Of the next event; empty: none of the hardware.
  absl::StatusOr<std::string> NextFailure() const;

  const NvmlLibrary* const nvml_;
  const GpuMonitorOptions options_;
  NvmlDeviceHandle device_ = nullptr;
  NvmlEventSet events_ = nullptr;
  MonotonicNotification stop_;
  std::thread thread_;
};

}  // namespace lockstep::worker::cuda
