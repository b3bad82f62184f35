#include "worker/device/cuda/cuda_devices.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"

namespace lockstep::worker::cuda {
namespace {

absl::StatusOr<std::string> AskFor(const Driver& driver, int ordinal) {
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

std::string DescribeDevice(const Driver& driver, int ordinal) {
  const absl::StatusOr<std::string> description = AskFor(driver, ordinal);
  return description.ok() ? *description : std::string(description.status().message());
}

}  // namespace lockstep::worker::cuda
