// CudaContext is shared by the ops of one tower on a GPU: kernels, library handles, a workspace.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <type_traits>

#include "absl/status/statusor.h"
#include "worker/device/cuda/cuda_device.h"
#include "worker/device/cuda/cuda_module.h"
#include "worker/ops/cuda/cublas/matmul.h"
#include "worker/ops/cuda/cudnn/convolution.h"
#include "worker/ops/cuda/launch.h"
#include "worker/ops/op_table.h"
#include "worker/ops/precision.h"

namespace lockstep::worker::cuda {

class CudaContext : public OpContext {
 public:
  // `device`: a CudaDevice.
  template <Precision kPrecision>
  static OpTable::MadeOr<OpContext> Create(Device* device) {
    return Create(device, kPrecision);
  }

  CudaDevice* device() const { return device_; }

  // Called by LOCKSTEP_FIND_KERNEL(context, lockstep_add).
  template <typename Function>
  absl::StatusOr<Kernel<Function>> Find(const char* name) const {
    absl::StatusOr<CudaKernel> kernel = module_->Find(name);
    if (!kernel.ok()) return std::move(kernel).status();
    return Kernel<Function>(*kernel);
  }

  // Makes a product in the context's precision and reserves its workspace. FAILED_PRECONDITION:
  // there is no cuBLASLt. UNIMPLEMENTED: cuBLASLt has no algorithm for it.
  absl::StatusOr<Matmul> MakeMatmul(MatmulShape shape);
  // Likewise makes one pass of a convolution. FAILED_PRECONDITION: there is no cuDNN.
  // UNIMPLEMENTED: cuDNN has no engine for it.
  absl::StatusOr<Convolution> MakeConvolution(const Conv2DOptions& options, ConvolutionPass pass);

  // The workspace is memory that an op uses during a call; the next op then uses the same memory.
  // It has the largest size that was reserved. A larger reservation moves it. After an error there
  // is none.
  absl::Status ReserveWorkspace(size_t bytes);
  void* workspace() const { return workspace_.get(); }

 private:
  CudaContext(CudaDevice* device, Precision precision, std::unique_ptr<CudaModule> module)
      : device_(device), precision_(precision), module_(std::move(module)) {}
  static OpTable::MadeOr<OpContext> Create(Device* device, Precision precision);

  // Of products with factors of this type. Products of float32 are in TF32 if the context is in
  // bfloat16.
  Precision PrecisionFor(DType factors) const;

  CudaDevice* const device_;
  const Precision precision_;
  const std::unique_ptr<CudaModule> module_;
  // Created on first use.
  std::optional<CublasLtHandle> cublas_;
  std::optional<CudnnHandle> cudnn_;
  std::set<std::string> logged_;  // convolutions of LogRefusedEngine: one line for all passes
  DeviceBuffer workspace_;
  size_t workspace_bytes_ = 0;
};

// Finds the kernel of this name. The function's declaration checks the arguments of a launch.
#define LOCKSTEP_FIND_KERNEL(context, function) (context)->Find<decltype(function)>(#function)

// The type of `function` for float elements, or of `function`_bf16 for T = BFloat16.
#define LOCKSTEP_FUNCTION_OF(T, function) \
  std::conditional_t<std::is_same_v<T, BFloat16>, decltype(function##_bf16), decltype(function)>
#define LOCKSTEP_FIND_KERNEL_OF(context, T, function)           \
  ((context)->template Find<LOCKSTEP_FUNCTION_OF(T, function)>( \
      std::is_same_v<T, BFloat16> ? #function "_bf16" : #function))

}  // namespace lockstep::worker::cuda
