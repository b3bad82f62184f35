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

// Xids after which no process can rely on the GPU: ECC errors (48, 64, 95), a halted controller
// (62, 119, 120), NVLink (74), the bus (79). Others concern one program, which gets an error of the
// driver, or report what the hardware has mended.
constexpr unsigned long long kFatalXids[] = {48, 62, 64, 74, 79, 95, 119, 120};

}  // namespace

GpuMonitor::GpuMonitor(const NvmlLibrary* nvml, const std::string& pci_bus_id,
                       GpuMonitorOptions options)
    : nvml_(nvml), options_(std::move(options)) {
  absl::Status opened =
      nvml == nullptr ? absl::UnavailableError("there is no NVML") : OpenDevice(pci_bus_id);
  if (opened.ok()) opened = OpenEvents();
  if (!opened.ok()) {
    log::Info(absl::StrCat(
        options_.name, ": errors of its hardware are those of the driver alone: ", opened.message(),
        ". In a container NVIDIA_DRIVER_CAPABILITIES=compute,utility has NVML"));
  }
  thread_ = std::thread([this] { Watch(); });
}

absl::Status GpuMonitor::OpenDevice(const std::string& pci_bus_id) {
  return nvml_->ToStatus((*nvml_)->DeviceByPciBusId(pci_bus_id.c_str(), &device_),
                         absl::StrCat("nvmlDeviceGetHandleByPciBusId of ", pci_bus_id));
}

absl::Status GpuMonitor::OpenEvents() {
  const NvmlLibrary& nvml = *nvml_;
  unsigned long long types = 0;
  LOCKSTEP_RETURN_IF_ERROR(nvml.ToStatus(nvml->SupportedEventTypes(device_, &types),
                                         "nvmlDeviceGetSupportedEventTypes"));
  // NVML refuses to register what a GPU does not have, such as errors of ECC.
  types &= kFailures;
  if (types == 0) return absl::UnavailableError("NVML tells of none");
  NvmlEventSet events = nullptr;
  LOCKSTEP_RETURN_IF_ERROR(nvml.ToStatus(nvml->EventSetCreate(&events), "nvmlEventSetCreate"));
  absl::Status registered =
      nvml.ToStatus(nvml->RegisterEvents(device_, types, events), "nvmlDeviceRegisterEvents");
  if (registered.ok()) {
    events_ = events;
  } else {
    nvml->EventSetFree(events);
  }
  return registered;
}

GpuMonitor::~GpuMonitor() {
  stop_.Notify();
  thread_.join();
  if (events_ != nullptr) (*nvml_)->EventSetFree(events_);
}

std::optional<int> GpuMonitor::utilization() const {
  const int percent = utilization_.load(std::memory_order_relaxed);
  return percent < 0 ? std::nullopt : std::optional(percent);
}

void GpuMonitor::SampleUtilization() {
  if (device_ == nullptr) return;
  NvmlUtilization rates;
  const bool is_known = (*nvml_)->UtilizationRates(device_, &rates) == kNvmlSuccess;
  utilization_.store(is_known ? static_cast<int>(rates.gpu) : -1, std::memory_order_relaxed);
}

absl::StatusOr<std::string> GpuMonitor::NextFailure() const {
  NvmlEventData event;
  const NvmlResult result = (*nvml_)->EventSetWait(events_, &event, kLookMilliseconds);
  if (result == kNvmlTimeout) return "";
  if (result == kNvmlGpuIsLost) return "the GPU is lost";
  LOCKSTEP_RETURN_IF_ERROR(nvml_->ToStatus(result, "nvmlEventSetWait"));
  if (event.type == kNvmlEventDoubleBitEccError) return "an ECC error of two bits";
  if (event.type != kNvmlEventXidCriticalError) return "";
  const std::string xid = absl::StrCat("Xid ", event.data);
  if (std::ranges::find(kFatalXids, event.data) != std::end(kFatalXids)) return xid;
  log::Info(absl::StrCat(options_.name, ": ", xid, ", which is no failure of the GPU"));
  return "";
}

void GpuMonitor::CheckDevice() {
  SampleUtilization();
  if (events_ == nullptr) {
    stop_.WaitFor(absl::Milliseconds(kLookMilliseconds));
    return;
  }
  const absl::StatusOr<std::string> failure = NextFailure();
  if (failure.ok()) {
    if (!failure->empty()) options_.on_failure(*failure);
    return;
  }
  log::Warning(absl::StrCat(options_.name, ": errors of its hardware are not seen any more: ",
                            failure.status().message()));
  (*nvml_)->EventSetFree(std::exchange(events_, nullptr));
}

void GpuMonitor::Watch() {
  while (!options_.has_failed()) {
    if (stop_.HasBeenNotified()) return;
    CheckDevice();
  }
  if (!stop_.WaitFor(options_.grace)) options_.on_stuck();
}

}  // namespace lockstep::worker::cuda
