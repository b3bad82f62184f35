// The backend of a process: devices of one kind and the ops that they have. The rest of the worker
// names neither.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/backend/device_choice.h"
#include "worker/device/communicator.h"
#include "worker/device/cuda/cuda_device.h"
#include "worker/device/cuda/driver.h"
#include "worker/device/device.h"
#include "worker/device/tower_devices.h"
#include "worker/ops/op_table.h"
#include "worker/ops/precision.h"

namespace lockstep::worker {

// Immutable, thread-safe. Copies share the first GPU.
class Backend {
 public:
  Backend() = default;  // the CPU

  // Tries the chosen devices and opens the libraries that their ops need. The driver outlives the
  // backend. FAILED_PRECONDITION with the remedy: something is missing or too old.
  // RESOURCE_EXHAUSTED with the exit code of lost peers: others hold a GPU that works. An error
  // with the exit code of a failed device: a GPU does not work. No errors for kCpu and kAuto.
  static absl::StatusOr<Backend> Open(const DeviceChoice& choice,
                                      const absl::StatusOr<const cuda::Driver*>& driver);

  // On the CPU: makes a new device with `threads` threads. On GPUs: returns the first one, which
  // stays open.
  std::shared_ptr<Device> MakeDevice(int threads) const;
  // Makes the devices for the towers of a job: one CPU device, or the first GPUs, at most
  // `most` >= 1. Each GPU but the first is closed with its last pointer. All are watched: the
  // process ends if it waits for a GPU that has failed. Error: a GPU can no longer be opened.
  absl::StatusOr<std::vector<std::shared_ptr<Device>>> MakeDevices(int threads, size_t most) const;
  // Lets GPU `reader` copy directly from the later GPUs that it has a link to. The log names those
  // without a link. MakeDevices does this for the first GPU.
  void ConnectBehind(const TowerDevices& gpus, size_t reader) const;
  // Makes an NCCL communicator for sums over at least two GPUs of MakeDevices, which outlive it.
  // Takes seconds. Errors: NCCL is missing, with the remedy, or it refuses these GPUs. The process
  // ends, with the remedy in the log, if a call of NCCL does not return.
  absl::StatusOr<std::unique_ptr<Communicator>> MakeNccl(const TowerDevices& gpus) const;
  size_t num_devices() const { return 1 + others_.size(); }
  // The CPU computes in float32, whatever the precision.
  const OpTable& ops(Precision precision = Precision::kFloat32) const;

  // For status reports: "cpu", "cuda:0,cuda:1".
  const std::string& name() const { return name_; }
  // For the log: "cuda:0 (NVIDIA H100, 79 GiB, compute capability 9.0)", "the CPU".
  const std::string& description() const { return description_; }
  // Chosen by kAuto.
  bool is_automatic() const { return is_automatic_; }
  // The reason why kAuto left GPUs out or found none. Empty: it has all, or it was not chosen.
  const std::string& problem() const { return problem_; }

 private:
  absl::Status OpenGpus(const DeviceChoice& choice, const cuda::Driver& driver);

  std::shared_ptr<cuda::CudaDevice> first_;  // null: the CPU
  std::vector<int> others_;                  // ordinals of the other GPUs, in their order
  const cuda::Driver* driver_ = nullptr;     // of GPUs
  cuda::CudaDeviceOptions options_;          // of each GPU
  std::string name_ = "cpu";
  std::string description_ = "the CPU";
  bool is_automatic_ = false;
  std::string problem_;
};

}  // namespace lockstep::worker
