// The devices that a worker uses for a job.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/job.pb.h"
#include "proto/status.pb.h"
#include "worker/backend/backend.h"
#include "worker/device/tower_devices.h"
#include "worker/service/gpu_reduction.h"

namespace lockstep::worker {

// Immutable once made.
class WorkerDevices {
 public:
  WorkerDevices() = default;  // none
  // For the job's towers: on the CPU they share the threads; of more GPUs than towers the first are
  // taken. Lines in the log say so, and how gradients of several GPUs are reduced. Errors as
  // Backend::MakeDevices.
  static absl::StatusOr<WorkerDevices> Create(const Backend& backend, const JobDef& job,
                                              int threads);

  TowerDevices towers() const;
  // Where what concerns all towers is.
  const std::shared_ptr<Device>& first() const { return devices_.front(); }
  // "cpu", "cuda:0,cuda:1".
  std::string names() const;
  // As GpuReduction::description.
  const std::string& reduction() const { return reduction_.description; }
  // Their names, and what each GPU has been used for. Any thread.
  void FillStatus(WorkerStatus* status) const;

 private:
  std::vector<std::shared_ptr<Device>> devices_;
  GpuReduction reduction_;  // last: of the devices
};

}  // namespace lockstep::worker
