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

  // Opens the chosen device and the libraries that its ops need. The driver outlives the backend.
  // FAILED_PRECONDITION with the remedy where something is missing or too old; never for kCpu and
  // kAuto.
  static absl::StatusOr<Backend> Open(const DeviceChoice& choice,
                                      const absl::StatusOr<const cuda::Driver*>& driver);

  // On the CPU a device of its own with so many threads; on a GPU that GPU.
  std::shared_ptr<Device> MakeDevice(int threads) const;
  // The CPU computes in float32, whatever the precision.
  const OpTable& ops(Precision precision = Precision::kFloat32) const;

  // For status reports: "cpu", "cuda:0".
  const std::string& name() const { return name_; }
  // For the log: "cuda:0 (NVIDIA H100, 79 GiB, compute capability 9.0)", "the CPU".
  const std::string& description() const { return description_; }
  // Chosen by kAuto.
  bool is_automatic() const { return is_automatic_; }
  // Why kAuto has found no GPU; empty: it has, or was not asked.
  const std::string& problem() const { return problem_; }

 private:
  Backend(std::shared_ptr<Device> gpu, std::string description, bool is_automatic);

  std::shared_ptr<Device> gpu_;  // null: the CPU
  std::string name_ = "cpu";
  std::string description_ = "the CPU";
  bool is_automatic_ = false;
  std::string problem_;
};

}  // namespace lockstep::worker
