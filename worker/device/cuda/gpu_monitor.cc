#include "worker/device/cuda/gpu_monitor.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/log/log.h"

namespace lockstep::worker::cuda {
namespace {

constexpr unsigned int kLookMilliseconds = 200;
constexpr unsigned long long kFailures = kNvmlEventDoubleBitEccError | kNvmlEventXidCriticalError;

// Xids that a program causes, of any process on the GPU, and not the hardware: a fault of a kernel,
// its memory, or its end. Whose they are has an error of the driver.
constexpr unsigned long long kXidsOfPrograms[] = {13, 31, 43, 45, 68, 109};

}  // namespace

absl::StatusOr<std::unique_ptr<GpuMonitor>> GpuMonitor::Start(const NvmlLibrary* nvml,
                                                              const std::string& pci_bus_id,
                                                              GpuMonitorOptions options) {
  std::unique_ptr<GpuMonitor> monitor(new GpuMonitor(nvml, std::move(options)));
  LOCKSTEP_RETURN_IF_ERROR(monitor->Open(pci_bus_id));
  monitor->thread_ = std::thread([self = monitor.get()] { self->Watch(); });
  return monitor;
}

absl::Status GpuMonitor::Open(const std::string& pci_bus_id) {
  const NvmlLibrary& nvml = *nvml_;
  LOCKSTEP_RETURN_IF_ERROR(
      nvml.ToStatus(nvml->DeviceByPciBusId(pci_bus_id.c_str(), &device_),
                    absl::StrCat("nvmlDeviceGetHandleByPciBusId of ", pci_bus_id)));
  unsigned long long types = 0;
  LOCKSTEP_RETURN_IF_ERROR(nvml.ToStatus(nvml->SupportedEventTypes(device_, &types),
                                         "nvmlDeviceGetSupportedEventTypes"));
  LOCKSTEP_RETURN_IF_ERROR(nvml.ToStatus(nvml->EventSetCreate(&events_), "nvmlEventSetCreate"));
  // A GPU without ECC has no errors of it, and refuses to tell.
  return nvml.ToStatus(nvml->RegisterEvents(device_, types & kFailures, events_),
                       "nvmlDeviceRegisterEvents");
}

GpuMonitor::~GpuMonitor() {
  stop_.Notify();
  if (thread_.joinable()) thread_.join();
  if (events_ != nullptr) (*nvml_)->EventSetFree(events_);
}

std::optional<int> GpuMonitor::utilization() const {
  NvmlUtilization rates;
  if ((*nvml_)->UtilizationRates(device_, &rates) != kNvmlSuccess) return std::nullopt;
  return static_cast<int>(rates.gpu);
}

absl::StatusOr<std::string> GpuMonitor::NextFailure() const {
  NvmlEventData event;
  const NvmlResult result = (*nvml_)->EventSetWait(events_, &event, kLookMilliseconds);
  if (result == kNvmlTimeout) return "";
  if (result == kNvmlGpuIsLost) return "the GPU is lost";
  LOCKSTEP_RETURN_IF_ERROR(nvml_->ToStatus(result, "nvmlEventSetWait"));
  if (event.type == kNvmlEventDoubleBitEccError) return "an ECC error of two bits";
  const bool is_of_program =
      std::ranges::find(kXidsOfPrograms, event.data) != std::end(kXidsOfPrograms);
  if (event.type != kNvmlEventXidCriticalError || is_of_program) return "";
  return absl::StrCat("Xid ", event.data);
}

void GpuMonitor::Watch() {
  absl::StatusOr<std::string> failure = "";
  while (failure.ok() && failure->empty()) {
    if (stop_.HasBeenNotified()) return;
    failure = NextFailure();
  }
  if (!failure.ok()) {
    log::Warning(absl::StrCat("errors of a GPU's hardware are not seen any more: ",
                              failure.status().message()));
    return;
  }
  options_.on_failure(*failure);
  if (!stop_.WaitFor(options_.grace)) options_.on_stuck();
}

}  // namespace lockstep::worker::cuda
