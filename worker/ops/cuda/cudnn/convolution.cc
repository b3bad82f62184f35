#include "worker/ops/cuda/cudnn/convolution.h"

#include <array>
#include <utility>

#include "common/base/exit_code.h"
#include "common/base/status_macros.h"

namespace lockstep::worker::cuda {

absl::StatusOr<CudnnHandle> CudnnHandle::Create(const CudaDevice* device,
                                                const CudnnLibrary* library) {
  CudnnContext* handle = nullptr;
  absl::Status made;
  device->CallOutsideCaptures(
      [&] { made = library->ToStatus((*library)->Create(&handle), "cudnnCreate"); });
  if (!made.ok()) {
    return device->Refused(absl::StatusCode::kFailedPrecondition, made,
                           ", or install all libraries of one cuDNN, 9.8 or later");
  }
  return CudnnHandle(device, library, handle);
}

CudnnHandle::CudnnHandle(const CudaDevice* device, const CudnnLibrary* library,
                         CudnnContext* handle)
    : library_(library), handle_(handle, [device, library](CudnnContext* unused) {
        device->CallOutsideCaptures([&] { (*library)->Destroy(unused); });
      }) {}

absl::StatusOr<std::vector<Convolution>> Convolution::Create(const CudnnHandle& handle,
                                                             const ConvolutionRequest& request,
                                                             size_t most) {
  LOCKSTEP_ASSIGN_OR_RETURN(
      std::vector<ConvolutionPlan> plans,
      PlanConvolution(&handle.library(), {.handle = handle.get()}, request, most));
  std::vector<Convolution> convolutions;
  for (ConvolutionPlan& plan : plans) convolutions.push_back(Convolution(handle, std::move(plan)));
  return convolutions;
}

Convolution::Convolution(const CudnnHandle& handle, ConvolutionPlan plan)
    : handle_(handle), plan_(std::move(plan)) {}

absl::Status Convolution::Enqueue(const ConvolutionOperands& operands, CUstream stream) {
  const absl::Status status = TryEnqueue(operands, stream);
  // Any of the calls may be the first to tell of a GPU that has failed.
  return status.ok() ? status : WithExitCode(status, ExitCode::kDeviceFailed);
}

void Convolution::LeaveStream() const {
  // An error comes again with the next stream.
  handle_.library()->SetStream(handle_.get(), nullptr);
}

absl::Status Convolution::TryEnqueue(const ConvolutionOperands& operands, CUstream stream) {
  const CudnnLibrary& cudnn = handle_.library();
  if (!pack_.has_value() || packed_ != operands) LOCKSTEP_RETURN_IF_ERROR(Pack(operands));
  LOCKSTEP_RETURN_IF_ERROR(
      cudnn.ToStatus(cudnn->SetStream(handle_.get(), stream), "cudnnSetStream"));
  return cudnn.ToStatus(cudnn->Execute(handle_.get(), plan_.plan.get(), pack_->get()),
                        "cudnnBackendExecute of a convolution");
}

absl::Status Convolution::Pack(const ConvolutionOperands& operands) {
  constexpr std::array<int64_t, 3> kIds = {kPlanInput, kPlanFilter, kPlanOutput};
  const std::array<void*, 3> pointers = {operands.input, operands.filter, operands.output};
  BackendDescriptor pack(&handle_.library(), kVariantPackDescriptor);
  pack.Set(kVariantPackIds, kIds);
  pack.Set(kVariantPackPointers, std::span<void* const>(pointers));
  pack.Set(kVariantPackWorkspace, std::span<void* const>(&operands.workspace, 1));
  LOCKSTEP_RETURN_IF_ERROR(pack.Finalize());
  pack_ = std::move(pack);
  packed_ = operands;
  return absl::OkStatus();
}

}  // namespace lockstep::worker::cuda
