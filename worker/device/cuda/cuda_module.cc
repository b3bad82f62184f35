#include "worker/device/cuda/cuda_module.h"

#include "absl/strings/str_cat.h"

namespace lockstep::worker::cuda {

absl::StatusOr<std::unique_ptr<CudaModule>> CudaModule::Load(const CudaDevice* device,
                                                             const void* image) {
  device->MakeCurrent();
  CUmodule module = nullptr;
  const Driver& driver = device->driver();
  const CUresult result = driver->ModuleLoadData(&module, image);
  if (result == kErrorNoBinaryForGpu || result == kErrorUnsupportedPtxVersion) {
    const absl::Status status =
        driver.ToStatus(result, absl::StrCat(device->name(), ": cuModuleLoadData"));
    return absl::FailedPreconditionError(
        absl::StrCat(status.message(),
                     ". Remedy: a GPU of compute capability 8.0 or later, and a driver for CUDA ",
                     VersionText(ToolkitVersion()), " or later"));
  }
  if (result == kErrorOutOfMemory) {
    return device->Refused(absl::StatusCode::kResourceExhausted,
                           driver.ToStatus(result, "cuModuleLoadData"), "");
  }
  if (result != kSuccess) {
    device->Fail(result, "cuModuleLoadData");
    return device->status();
  }
  return std::unique_ptr<CudaModule>(new CudaModule(device, module));
}

CudaModule::~CudaModule() {
  device_->MakeCurrent();
  const CUresult result = device_->driver()->ModuleUnload(module_);
  if (result != kSuccess) device_->Fail(result, "cuModuleUnload");
}

absl::StatusOr<CudaKernel> CudaModule::Find(const char* name) const {
  device_->MakeCurrent();
  CudaKernel kernel{.name = name};
  const CUresult result = device_->driver()->ModuleGetFunction(&kernel.function, module_, name);
  if (result == kSuccess) return kernel;
  device_->Fail(result, absl::StrCat("cuModuleGetFunction of ", name));
  return device_->status();
}

}  // namespace lockstep::worker::cuda
