// One pass of a convolution of fixed shapes, by cuDNN.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/device/cuda/cuda_device.h"
#include "worker/ops/cuda/cudnn/convolution_plan.h"

namespace lockstep::worker::cuda {

// What the convolutions of one context share. Copies are the same object.
class CudnnHandle {
 public:
  // `device` and `library` outlive it. It is made and destroyed while no stream of the device
  // captures: cuDNN may wait for the device then, and the capture would be lost. An error has the
  // exit code of a device that has failed; FAILED_PRECONDITION with the remedy: the GPU works.
  static absl::StatusOr<CudnnHandle> Create(const CudaDevice* device, const CudnnLibrary* library);

  const CudnnLibrary& library() const { return *library_; }
  CudnnContext* get() const { return handle_.get(); }

 private:
  CudnnHandle(const CudaDevice* device, const CudnnLibrary* library, CudnnContext* handle);

  const CudnnLibrary* library_;
  std::shared_ptr<CudnnContext> handle_;
};

// Memory of the device, aligned to 16 bytes. That of the result is written, the other two are read.
struct ConvolutionOperands {
  void* input = nullptr;      // or its gradient
  void* filter = nullptr;     // [filters, height, width, channels], or its gradient
  void* output = nullptr;     // or its gradient
  void* workspace = nullptr;  // workspace_bytes() of it

  bool operator==(const ConvolutionOperands&) const = default;
};

// Used by one thread at a time.
class Convolution {
 public:
  // For the device of the handle, one for each engine that PlanConvolution plans. Errors alike.
  static absl::StatusOr<std::vector<Convolution>> Create(const CudnnHandle& handle,
                                                         const ConvolutionRequest& request,
                                                         size_t most = 1);

  int64_t engine() const { return plan_.engine; }
  int64_t workspace_bytes() const { return plan_.workspace_bytes; }
  // As ConvolutionPlan has it.
  int64_t refused_workspace_bytes() const { return plan_.refused_workspace_bytes; }

  // Enqueues it. The device is current. Allocates nothing where the operands are those of the last
  // call. Errors have the exit code of a failed device.
  absl::Status Enqueue(const ConvolutionOperands& operands, CUstream stream);
  // The handle has no stream until the next Enqueue. Call it before that stream is destroyed.
  void LeaveStream() const;

 private:
  Convolution(const CudnnHandle& handle, ConvolutionPlan plan);

  absl::Status TryEnqueue(const ConvolutionOperands& operands, CUstream stream);
  absl::Status Pack(const ConvolutionOperands& operands);

  CudnnHandle handle_;
  ConvolutionPlan plan_;
  // The operands as cuDNN takes them, once there were any.
  std::optional<BackendDescriptor> pack_;
  ConvolutionOperands packed_;
};

}  // namespace lockstep::worker::cuda
