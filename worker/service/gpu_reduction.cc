#include "worker/service/gpu_reduction.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/log/log.h"
#include "worker/tower/hierarchical_copy.h"

namespace lockstep::worker {
namespace {

struct Wanted {
  CrossTowerOpsKind kind;
  std::string reason;
};

Wanted WantedBy(const JobDef& job, const TowerDevices& devices) {
  const CrossTowerOpsDef& ops = job.strategy().parameter_server().cross_tower_ops();
  if (ops.has_reduction_to_one_device()) {
    return {CrossTowerOpsKind::kReductionToOneDevice, "the job says reduction_to_one_device"};
  }
  if (ops.has_all_reduce()) {
    const bool is_hierarchical =
        ops.all_reduce().all_reduce_alg() == Name(CrossTowerOpsKind::kHierarchicalCopy);
    return {is_hierarchical ? CrossTowerOpsKind::kHierarchicalCopy : CrossTowerOpsKind::kNccl,
            "the job says all_reduce"};
  }
  CrossTowerOpsChoice choice = ChooseTheBestFor(devices);
  for (const std::string& warning : choice.warnings) log::Warning(warning);
  return {choice.kind, std::move(choice.reason)};
}

absl::StatusOr<std::unique_ptr<Communicator>> CommunicatorOf(CrossTowerOpsKind kind,
                                                             const TowerDevices& devices,
                                                             const Backend& backend) {
  if (kind == CrossTowerOpsKind::kNccl) return backend.MakeNccl(devices);
  backend.ConnectBehind(devices, HierarchicalCopy::SecondMain(devices.size()));
  return HierarchicalCopy::Create(devices, backend.ops());
}

}  // namespace

CrossTowerOpsChoice ChooseTheBestFor(const TowerDevices& devices) {
  std::vector<DeviceId> ids;
  std::vector<std::string> problems;
  MachineDescription machine;
  const DeviceKind kind = devices.is_host() ? DeviceKind::kCpu : DeviceKind::kGpu;
  for (size_t i = 0; i < devices.size(); ++i) {
    ids.push_back({.kind = kind, .index = static_cast<int>(i)});
    std::vector<int>& links = machine.links.emplace_back();
    for (size_t other = 0; other < devices.size(); ++other) {
      const absl::StatusOr<bool> has_link = devices.of(i)->HasLinkTo(*devices.of(other));
      if (!has_link.ok()) {
        problems.push_back(absl::StrCat("links of ", devices.of(i)->name(), " to ",
                                        devices.of(other)->name(),
                                        " are not known: ", has_link.status().message()));
      } else if (*has_link) {
        links.push_back(static_cast<int>(other));
      }
    }
  }
  machine.visible = ids;
  CrossTowerOpsChoice choice = ChooseTheBest(ids, machine);
  choice.warnings.insert(choice.warnings.end(), problems.begin(), problems.end());
  return choice;
}

GpuReduction MakeGpuReduction(const JobDef& job, const TowerDevices& devices,
                              const Backend& backend) {
  // Replicated towers are reduced on the host, and those of an asynchronous job push each its own.
  const bool are_reduced = !job.strategy().has_replicated() && !job.sync().has_asynchronous();
  if (devices.size() == 1 && job.strategy().parameter_server().has_cross_tower_ops()) {
    log::Info(absl::StrCat("strategy.parameter_server.cross_tower_ops has no effect: this worker ",
                           "computes on ", devices.first()->name(), " alone"));
  }
  if (devices.size() == 1 || !are_reduced) return {};
  const Wanted wanted = WantedBy(job, devices);
  const std::string copies = absl::StrCat("copies to ", devices.first()->name(), ": ");
  if (wanted.kind == CrossTowerOpsKind::kReductionToOneDevice) {
    return {.description = absl::StrCat(copies, wanted.reason)};
  }
  auto communicator = CommunicatorOf(wanted.kind, devices, backend);
  if (!communicator.ok()) {
    log::Warning(absl::StrCat("gradients of GPUs are not reduced by ", Name(wanted.kind), ": ",
                              communicator.status().message()));
    return {.description =
                absl::StrCat(copies, Name(wanted.kind), " cannot be used (", wanted.reason, ")")};
  }
  std::string description = absl::StrCat((*communicator)->name(), ": ", wanted.reason);
  return {*std::move(communicator), std::move(description)};
}

}  // namespace lockstep::worker
