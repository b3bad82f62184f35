#include "worker/ops/cuda/cuda_context.h"

#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "worker/ops/cuda/cudnn/engine_timing.h"
#include "worker/ops/cuda/kernel_image.h"

namespace lockstep::worker::cuda {
namespace {

// Each takes 16 runs and a plan, when a worker starts. cuDNN expects those behind to be slower.
constexpr size_t kMostTimedEngines = 8;

}  // namespace

OpTable::MadeOr<OpContext> CudaContext::Create(Device* device, Precision precision) {
  auto* const own = static_cast<CudaDevice*>(device);
  LOCKSTEP_ASSIGN_OR_RETURN(std::unique_ptr<CudaModule> module,
                            CudaModule::Load(own, lockstep_kernels));
  return std::unique_ptr<OpContext>(new CudaContext(own, precision, std::move(module)));
}

absl::StatusOr<Matmul> CudaContext::MakeMatmul(MatmulShape shape) {
  device_->MakeCurrent();
  if (!cublas_.has_value()) {
    LOCKSTEP_ASSIGN_OR_RETURN(const CublasLtLibrary* const library, SharedCublasLt());
    LOCKSTEP_ASSIGN_OR_RETURN(cublas_, CublasLtHandle::Create(device_, library));
  }
  shape.tf32 = PrecisionFor(shape.factors) == Precision::kTf32;
  LOCKSTEP_ASSIGN_OR_RETURN(Matmul matmul, Matmul::Create(*cublas_, shape));
  LOCKSTEP_RETURN_IF_ERROR(ReserveWorkspace(matmul.workspace_bytes()));
  return matmul;
}

absl::StatusOr<Convolution> CudaContext::MakeConvolution(const Conv2DOptions& options,
                                                         ConvolutionPass pass) {
  device_->MakeCurrent();
  if (!cudnn_.has_value()) {
    LOCKSTEP_ASSIGN_OR_RETURN(const CudnnLibrary* const library, SharedCudnn());
    LOCKSTEP_ASSIGN_OR_RETURN(cudnn_, CudnnHandle::Create(device_, library));
  }
  const int64_t most_workspace = MostConvolutionWorkspace(device_->use().memory_limit);
  LOCKSTEP_ASSIGN_OR_RETURN(
      std::vector<Convolution> candidates,
      Convolution::Create(*cudnn_, {options, pass, PrecisionFor(options.type), most_workspace},
                          device_->autotune() ? kMostTimedEngines : 1));
  if (const int64_t refused = candidates[0].refused_workspace_bytes(); refused > 0) {
    const std::string convolution = DescribeConvolution(options);
    if (logged_.insert(convolution).second) {
      LogRefusedEngine(device_->name(), convolution, refused, most_workspace);
    }
  }
  size_t chosen = 0;
  if (candidates.size() > 1) {
    LOCKSTEP_ASSIGN_OR_RETURN(chosen, FindFastest(device_, options, candidates, Clock::Real()));
  }
  Convolution convolution = std::move(candidates[chosen]);
  LOCKSTEP_RETURN_IF_ERROR(ReserveWorkspace(static_cast<size_t>(convolution.workspace_bytes())));
  device_->CountConvolution(convolution.engine());
  return convolution;
}

Precision CudaContext::PrecisionFor(DType factors) const {
  if (factors == DType::kBFloat16) return Precision::kBfloat16;
  return precision_ == Precision::kFloat32 ? Precision::kFloat32 : Precision::kTf32;
}

absl::Status CudaContext::ReserveWorkspace(size_t bytes) {
  if (bytes <= workspace_bytes_) return absl::OkStatus();
  // What it holds is not needed, and there may not be room for both.
  workspace_.reset();
  workspace_bytes_ = 0;
  LOCKSTEP_ASSIGN_OR_RETURN(workspace_, device_->Allocate(bytes));
  workspace_bytes_ = bytes;
  return absl::OkStatus();
}

}  // namespace lockstep::worker::cuda
