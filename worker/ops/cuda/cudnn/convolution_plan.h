// PlanConvolution chooses cuDNN engines for a convolution. A plan states the workspace it needs.
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

// Images are channels last, kernels [filters, height, width, channels]. In bfloat16 all are of that
// type; sums are float32.
struct ConvolutionRequest {
  Conv2DOptions options;
  ConvolutionPass pass = ConvolutionPass::kForward;
  Precision precision = Precision::kFloat32;
  int64_t most_workspace_bytes = 0;
};

// The device to plan for. It is the device of `handle`, or a `described` one (finalized
// kDevicePropertiesDescriptor) that need not exist here. The other member is null.
struct PlanTarget {
  CudnnContext* handle = nullptr;
  const BackendDescriptor* described = nullptr;
};

// Ids of the tensors of a plan, by which memory is bound to them.
enum PlanTensor : int64_t { kPlanInput = 1, kPlanFilter = 2, kPlanOutput = 3 };

struct ConvolutionPlan {
  BackendDescriptor plan;
  int64_t engine = 0;  // its number, of cuDNN
  int64_t workspace_bytes = 0;
  int64_t configurations = 0;  // number that cuDNN's heuristics named
  // Workspace of the first engine that was refused before it because it needs too much; 0: none.
  int64_t refused_workspace_bytes = 0;
};

// Returns the most workspace of a convolution on a GPU with this memory, or memory limit: a 32nd,
// at least 640 MiB. Each tower and evaluation has a workspace. The result depends on nothing else,
// so that the choice of the engine is always the same.
int64_t MostConvolutionWorkspace(uint64_t memory_bytes);

// "128 images of 56x56x64 to 56x56x256".
std::string DescribeConvolution(const Conv2DOptions& options);

// Logs that cuDNN prefers an engine with a workspace of `wanted` bytes for the convolution on this
// device. At most `most` bytes are allowed.
void LogRefusedEngine(absl::string_view device, absl::string_view convolution, int64_t wanted,
                      int64_t most);

// Returns the first plans, at most `most` >= 1, in the order of cuDNN's heuristics. Their engines
// are deterministic, compute in the precision and stay within the workspace. UNIMPLEMENTED with the
// remedy: there is none. Other errors of cuDNN have the exit code of a failed device.
absl::StatusOr<std::vector<ConvolutionPlan>> PlanConvolution(const CudnnLibrary* library,
                                                             const PlanTarget& target,
                                                             const ConvolutionRequest& request,
                                                             size_t most = 1);

}  // namespace lockstep::worker::cuda
