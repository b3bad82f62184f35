// What the ops of one tower on a GPU share: the kernels, handles of libraries, a workspace.
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

  // By LOCKSTEP_FIND_KERNEL(context, lockstep_add).
  template <typename Function>
  absl::StatusOr<Kernel<Function>> Find(const char* name) const {
    absl::StatusOr<CudaKernel> kernel = module_->Find(name);
    if (!kernel.ok()) return std::move(kernel).status();
    return Kernel<Function>(*kernel);
  }

  // A product in the context's precision that has its workspace reserved. FAILED_PRECONDITION where
  // there is no cuBLASLt; UNIMPLEMENTED where cuBLASLt has no algorithm for it.
  absl::StatusOr<Matmul> MakeMatmul(MatmulShape shape);
  // One pass of a convolution, likewise. FAILED_PRECONDITION where there is no cuDNN;
  // UNIMPLEMENTED where cuDNN has no engine for it.
  absl::StatusOr<Convolution> MakeConvolution(const Conv2DOptions& options, ConvolutionPass pass);

  // Memory that an op uses between the beginning and the end of a call, and then the next op: of as
  // many bytes as any has reserved. Where it is changes when one is made. After an error there is
  // none.
  absl::Status ReserveWorkspace(size_t bytes);
  void* workspace() const { return workspace_.get(); }

 private:
  CudaContext(CudaDevice* device, Precision precision, std::unique_ptr<CudaModule> module)
      : device_(device), precision_(precision), module_(std::move(module)) {}
  static OpTable::MadeOr<OpContext> Create(Device* device, Precision precision);

  // Of products whose factors are of this type: in bfloat16 those of float32 are in TF32.
  Precision PrecisionFor(DType factors) const;

  CudaDevice* const device_;
  const Precision precision_;
  const std::unique_ptr<CudaModule> module_;
  // Once they were asked for.
  std::optional<CublasLtHandle> cublas_;
  std::optional<CudnnHandle> cudnn_;
  std::set<std::string> logged_;  // convolutions of LogRefusedEngine: one line for all passes
  DeviceBuffer workspace_;
  size_t workspace_bytes_ = 0;
};

// The kernel that this function declares, so that a launch's arguments are checked by it.
#define LOCKSTEP_FIND_KERNEL(context, function) (context)->Find<decltype(function)>(#function)

// Of the functions `function` and `function`_bf16 the one for elements of type T, float or
// BFloat16.
#define LOCKSTEP_FUNCTION_OF(T, function) \
  std::conditional_t<std::is_same_v<T, BFloat16>, decltype(function##_bf16), decltype(function)>
#define LOCKSTEP_FIND_KERNEL_OF(context, T, function)           \
  ((context)->template Find<LOCKSTEP_FUNCTION_OF(T, function)>( \
      std::is_same_v<T, BFloat16> ? #function "_bf16" : #function))

}  // namespace lockstep::worker::cuda
