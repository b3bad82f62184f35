#include "worker/device/cuda/cuda_module.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace lockstep::worker::cuda {

absl::StatusOr<std::unique_ptr<CudaModule>> CudaModule::Load(const CudaDevice* device,
                                                             const void* image) {
  device->MakeCurrent();
  CUmodule module = nullptr;
  const Driver& driver = device->driver();
  const CUresult result = driver->ModuleLoadData(&module, image);
  const absl::Status status =
      driver.ToStatus(result, absl::StrCat(device->name(), ": cuModuleLoadData"));
  if (result == kErrorNoBinaryForGpu || result == kErrorUnsupportedPtxVersion) {
    return absl::FailedPreconditionError(
        absl::StrCat(status.message(),
                     ". Remedy: a GPU of compute capability 8.0 or later, and a driver for CUDA ",
                     VersionText(ToolkitVersion()), " or later"));
  }
  LOCKSTEP_RETURN_IF_ERROR(status);
  return std::unique_ptr<CudaModule>(new CudaModule(device, module));
}

CudaModule::~CudaModule() {
  device_->MakeCurrent();
  const CUresult result = device_->driver()->ModuleUnload(module_);
  if (result != kSuccess) device_->Fail(result, "cuModuleUnload");
}

absl::StatusOr<CudaKernel> CudaModule::Find(const char* name) const {
  device_->MakeCurrent();
  const Driver& driver = device_->driver();
  CudaKernel kernel{.name = name};
  LOCKSTEP_RETURN_IF_ERROR(
      driver.ToStatus(driver->ModuleGetFunction(&kernel.function, module_, name),
                      absl::StrCat(device_->name(), ": cuModuleGetFunction of ", name)));
  return kernel;
}

}  // namespace lockstep::worker::cuda
