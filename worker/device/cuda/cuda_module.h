// Compiled kernels on a GPU.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "worker/device/cuda/cuda_device.h"

namespace lockstep::worker::cuda {

// Of a module, which outlives it.
struct CudaKernel {
  CUfunction function = nullptr;
  std::string name;
};

// Immutable, thread-safe.
class CudaModule {
 public:
  // `image`: what nvcc -fatbin has written. `device` outlives the module.
  // FAILED_PRECONDITION, with the remedy: it has no code for this GPU, or the GPU has no memory for
  // it.
  static absl::StatusOr<std::unique_ptr<CudaModule>> Load(const CudaDevice* device,
                                                          const void* image);
  ~CudaModule();

  // INTERNAL: there is none of this name.
  absl::StatusOr<CudaKernel> Find(const char* name) const;

 private:
  CudaModule(const CudaDevice* device, CUmodule module) : device_(device), module_(module) {}

  const CudaDevice* const device_;
  const CUmodule module_;
};

}  // namespace lockstep::worker::cuda
