#include "worker/device/cuda/driver.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/device/cuda/shared_library.h"

namespace lockstep::worker::cuda {
namespace {

// What the user can do about an error of cuInit or cuDeviceGetCount.
absl::string_view RemedyFor(CUresult result) {
  switch (result) {
    case kErrorStubLibrary:
      return "take the toolkit's folder of stubs out of LD_LIBRARY_PATH";
    case kErrorSystemDriverMismatch:
      return "restart the machine: the driver's library and kernel module differ in version";
    default:
      return "see whether nvidia-smi lists a GPU, and what CUDA_VISIBLE_DEVICES and the container "
             "leave of them";
  }
}

absl::Status TooOld(absl::string_view what, int least_version) {
  return absl::FailedPreconditionError(
      absl::StrCat("the CUDA driver is too old: ", what, ". Remedy: install an NVIDIA driver for ",
                   "CUDA ", VersionText(least_version), " or later"));
}

}  // namespace

std::string VersionText(int version) {
  return absl::StrCat(version / 1000, ".", version % 1000 / 10);
}

absl::StatusOr<std::unique_ptr<Driver>> Driver::Open(const std::string& library,
                                                     int least_version) {
  const absl::StatusOr<SharedLibrary> opened = SharedLibrary::Open(library);
  if (!opened.ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat("no CUDA driver: ", opened.status().message(),
                     ". Remedy: install NVIDIA's driver; in a container, give it the GPUs"));
  }
  DriverFunctions functions;
#define LOCKSTEP_FIND_FUNCTION(name, symbol, parameters)                     \
  if (!opened->Find(#symbol, &functions.name)) {                             \
    return TooOld(absl::StrCat(library, " has no " #symbol), least_version); \
  }
  LOCKSTEP_CUDA_DRIVER_FUNCTIONS(LOCKSTEP_FIND_FUNCTION)
#undef LOCKSTEP_FIND_FUNCTION
  return Create(functions, least_version);
}

absl::StatusOr<std::unique_ptr<Driver>> Driver::Create(const DriverFunctions& functions,
                                                       int least_version) {
  std::unique_ptr<Driver> driver(new Driver(functions));
  LOCKSTEP_RETURN_IF_ERROR(driver->Initialize(least_version));
  return driver;
}

absl::Status Driver::Initialize(int least_version) {
  const auto check = [this](CUresult result, absl::string_view call) {
    if (result == kSuccess) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat(
        "no CUDA device: ", call, ": ", Describe(result), ". Remedy: ", RemedyFor(result)));
  };
  // The version is known without a device, and says more than the errors of an old driver.
  LOCKSTEP_RETURN_IF_ERROR(check((*this)->DriverGetVersion(&version_), "cuDriverGetVersion"));
  if (version_ < least_version) {
    return TooOld(absl::StrCat("it supports CUDA ", VersionText(version_)), least_version);
  }
  LOCKSTEP_RETURN_IF_ERROR(check((*this)->Init(0), "cuInit"));
  LOCKSTEP_RETURN_IF_ERROR(check((*this)->DeviceGetCount(&device_count_), "cuDeviceGetCount"));
  if (device_count_ == 0) return check(kErrorNoDevice, "cuDeviceGetCount");
  return absl::OkStatus();
}

std::string Driver::Describe(CUresult result) const {
  const char* name = nullptr;
  const char* text = nullptr;
  if (functions_.GetErrorName(result, &name) != kSuccess || name == nullptr) {
    return absl::StrCat("error ", result);
  }
  if (functions_.GetErrorString(result, &text) != kSuccess || text == nullptr) return name;
  return absl::StrCat(name, " (", text, ")");
}

absl::Status Driver::ToStatus(CUresult result, absl::string_view call) const {
  if (result == kSuccess) return absl::OkStatus();
  const auto code = result == kErrorOutOfMemory ? absl::StatusCode::kResourceExhausted
                                                : absl::StatusCode::kInternal;
  return absl::Status(code, absl::StrCat(call, ": ", Describe(result)));
}

int ToolkitVersion() { return LOCKSTEP_CUDA_VERSION; }

absl::StatusOr<const Driver*> SharedDriver() {
  if (ToolkitVersion() == 0) {
    return absl::FailedPreconditionError(
        "this worker was built without CUDA. Remedy: ./lockstep build --cuda, or build it where "
        "the CUDA toolkit is, in /usr/local/cuda or where CUDA_HOME says");
  }
  // Kernels run on every driver of the toolkit's major version.
  static const auto* const driver = new absl::StatusOr<std::unique_ptr<Driver>>(
      Driver::Open(Driver::kLibrary, ToolkitVersion() / 1000 * 1000));
  if (!driver->ok()) return driver->status();
  return (*driver)->get();
}

}  // namespace lockstep::worker::cuda
