// Which of cuDNN's engines computes a convolution, and the memory that it needs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
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
  // Of the first engine before it that needs more workspace than it may have; 0: there is none.
  int64_t refused_workspace_bytes = 0;
};

// What a convolution may have on a GPU whose memory, or limit of it, is so large: always the same,
// so that the choice of its engine is. A 32nd: towers and evaluations have a workspace each.
int64_t MostConvolutionWorkspace(uint64_t memory_bytes);

// "128 images of 56x56x64 to 56x56x256".
std::string DescribeConvolution(const Conv2DOptions& options);

// That cuDNN prefers an engine of such workspace for the convolution on this device, which may have
// `most`.
void LogRefusedEngine(absl::string_view device, absl::string_view convolution, int64_t wanted,
                      int64_t most);

// The first ones, at most `most` >= 1, in the order of cuDNN's heuristics that are deterministic,
// compute in the precision and need no more workspace. UNIMPLEMENTED with the remedy: there is
// none. Other errors of cuDNN have the exit code of a failed device.
absl::StatusOr<std::vector<ConvolutionPlan>> PlanConvolution(const CudnnLibrary* library,
                                                             const PlanTarget& target,
                                                             const ConvolutionRequest& request,
                                                             size_t most = 1);

}  // namespace lockstep::worker::cuda
