#include "worker/device/cuda/cuda_devices.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"

namespace lockstep::worker::cuda {
namespace {

absl::StatusOr<std::string> DescribeDevice(const Driver& driver, int ordinal) {
  constexpr int kLongestName = 256;
  CUdevice device = 0;
  char name[kLongestName] = {};
  size_t bytes = 0;
  int major = 0;
  int minor = 0;
  LOCKSTEP_RETURN_IF_ERROR(driver.ToStatus(driver->DeviceGet(&device, ordinal), "cuDeviceGet"));
  LOCKSTEP_RETURN_IF_ERROR(
      driver.ToStatus(driver->DeviceGetName(name, kLongestName, device), "cuDeviceGetName"));
  LOCKSTEP_RETURN_IF_ERROR(
      driver.ToStatus(driver->DeviceTotalMem(&bytes, device), "cuDeviceTotalMem"));
  for (const auto& [attribute, value] : {std::pair(kAttributeComputeCapabilityMajor, &major),
                                         std::pair(kAttributeComputeCapabilityMinor, &minor)}) {
    LOCKSTEP_RETURN_IF_ERROR(driver.ToStatus(driver->DeviceGetAttribute(value, attribute, device),
                                             "cuDeviceGetAttribute"));
  }
  return absl::StrFormat("%s, %d GiB, compute capability %d.%d", name, bytes >> 30, major, minor);
}

}  // namespace

CudaReport FindCudaDevices(const absl::StatusOr<const Driver*>& driver) {
  CudaReport report{.toolkit = ToolkitVersion()};
  if (!driver.ok()) {
    report.problem = std::string(driver.status().message());
    return report;
  }
  for (int i = 0; i < (*driver)->device_count(); ++i) {
    const absl::StatusOr<std::string> device = DescribeDevice(**driver, i);
    report.devices.push_back(
        device.ok() ? *device : absl::StrCat("cuda:", i, ": ", device.status().message()));
  }
  return report;
}

std::string Describe(const CudaReport& report) {
  if (report.toolkit == 0) return "built without CUDA";
  const std::string version = absl::StrCat("CUDA ", VersionText(report.toolkit), ": ");
  if (!report.devices.empty()) return version + absl::StrJoin(report.devices, "; ");
  return absl::StrCat(version, "no device (", report.problem, ")");
}

}  // namespace lockstep::worker::cuda
