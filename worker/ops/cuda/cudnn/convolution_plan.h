// Which of cuDNN's engines computes a convolution, and the memory that it needs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/ops/conv2d.h"
#include "worker/ops/cuda/cudnn/backend_descriptor.h"
#include "worker/ops/precision.h"

namespace lockstep::worker::cuda {

enum class ConvolutionPass { kForward, kInputGradient, kKernelGradient };

// Images are channels last, kernels [filters, height, width, channels]. In bfloat16 all
// are of that type; sums are float32.
struct ConvolutionRequest {
  Conv2DOptions options;
  ConvolutionPass pass = ConvolutionPass::kForward;
  Precision precision = Precision::kFloat32;
  int64_t most_workspace_bytes = 0;
};

// For which device: the one of a handle, or one that is described (finalized
// kDevicePropertiesDescriptor) and need not be there. The other is null.
struct PlanTarget {
  CudnnContext* handle = nullptr;
  const BackendDescriptor* described = nullptr;
};

// Whose memory the tensors of a plan are.
enum PlanTensor : int64_t { kPlanInput = 1, kPlanFilter = 2, kPlanOutput = 3 };

struct ConvolutionPlan {
  BackendDescriptor plan;
  int64_t engine = 0;  // its number, of cuDNN
  int64_t workspace_bytes = 0;
  int64_t configurations = 0;  // that cuDNN's heuristics named
};

// The first ones, at most `most` >= 1, in the order of cuDNN's heuristics that are deterministic,
// compute in the precision and need no more workspace. UNIMPLEMENTED: there is none. Other errors
// of cuDNN have the exit code of a failed device.
absl::StatusOr<std::vector<ConvolutionPlan>> PlanConvolution(const CudnnLibrary* library,
                                                             const PlanTarget& target,
                                                             const ConvolutionRequest& request,
                                                             size_t most = 1);

}  // namespace lockstep::worker::cuda
