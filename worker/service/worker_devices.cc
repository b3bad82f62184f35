#include "worker/service/worker_devices.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/quantity.h"
#include "common/base/status_macros.h"
#include "common/log/log.h"
#include "worker/service/trainer.h"

namespace lockstep::worker {

absl::StatusOr<WorkerDevices> WorkerDevices::Create(const Backend& backend, const JobDef& job,
                                                    int threads) {
  const int towers = TowersOf(job);
  WorkerDevices devices;
  LOCKSTEP_ASSIGN_OR_RETURN(devices.devices_, backend.MakeDevices(std::max(1, threads / towers),
                                                                  static_cast<size_t>(towers)));
  if (devices.devices_.size() < backend.num_devices()) {
    log::Info(absl::StrCat("uses ", devices.names(), " of ", backend.name(), ": the job has ",
                           CountText(static_cast<uint64_t>(towers), "tower"), " per worker"));
  }
  devices.reduction_ = MakeGpuReduction(job, devices.towers(), backend);
  if (!devices.reduction().empty()) {
    log::Info(
        absl::StrCat("gradients of ", devices.names(), " are reduced by ", devices.reduction()));
  }
  return devices;
}

TowerDevices WorkerDevices::towers() const {
  std::vector<Device*> all;
  for (const std::shared_ptr<Device>& device : devices_) all.push_back(device.get());
  return TowerDevices(std::move(all), reduction_.communicator.get());
}

std::string WorkerDevices::names() const {
  return absl::StrJoin(devices_, ",", [](std::string* out, const std::shared_ptr<Device>& device) {
    absl::StrAppend(out, device->name());
  });
}

void WorkerDevices::FillStatus(WorkerStatus* status) const {
  status->set_device(names());
  for (const std::shared_ptr<Device>& device : devices_) {
    if (device->is_host()) continue;
    const DeviceUse use = device->use();
    GpuStatus* const gpu = status->add_gpus();
    gpu->set_name(device->name());
    gpu->set_memory_bytes(use.memory);
    gpu->set_memory_limit_bytes(use.memory_limit);
    gpu->set_bytes_to_device(use.to_device);
    gpu->set_bytes_to_host(use.to_host);
    gpu->set_training_steps(use.training_steps);
    gpu->set_graph_steps(use.graph_launches);
    gpu->set_graph_error(use.graph_error);
    for (const auto& [engine, convolutions] : use.convolutions) {
      EngineStatus* const status = gpu->add_engines();
      status->set_engine(engine);
      status->set_convolutions(convolutions);
    }
    if (use.utilization.has_value()) {
      gpu->set_utilization_percent(static_cast<uint32_t>(*use.utilization));
    }
  }
}

}  // namespace lockstep::worker
