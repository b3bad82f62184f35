// Where a process computes: a device and the ops that it has. The rest of the worker names neither.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "worker/backend/device_choice.h"
#include "worker/device/cuda/driver.h"
#include "worker/device/device.h"
#include "worker/ops/op_table.h"
#include "worker/ops/precision.h"

namespace lockstep::worker {

// Immutable, thread-safe. Copies share a GPU.
class Backend {
 public:
  Backend() = default;  // the CPU

  // Opens the chosen device and the libraries that its ops need. FAILED_PRECONDITION with the
  // remedy where something is missing or too old; never for kCpu and kAuto.
  static absl::StatusOr<Backend> Open(const DeviceChoice& choice);
  // The same with this driver, which outlives the backend.
  static absl::StatusOr<Backend> Open(const DeviceChoice& choice,
                                      const absl::StatusOr<const cuda::Driver*>& driver);

  // On the CPU a device of its own with so many threads; on a GPU that GPU.
  std::shared_ptr<Device> MakeDevice(int threads) const;
  // The CPU computes in float32, whatever the precision.
  const OpTable& ops(Precision precision = Precision::kFloat32) const;

  // For status reports: "cpu", "cuda:0".
  const std::string& name() const { return name_; }
  // For the log: "cuda:0 (NVIDIA H100, 79 GiB, compute capability 9.0)", "the CPU: no CUDA driver
  // ..." where kAuto has found no GPU.
  const std::string& description() const { return description_; }

 private:
  explicit Backend(std::shared_ptr<Device> gpu, std::string description);

  std::shared_ptr<Device> gpu_;  // null: the CPU
  std::string name_ = "cpu";
  std::string description_ = "the CPU";
};

}  // namespace lockstep::worker
