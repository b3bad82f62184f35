#include "worker/ops/cuda/cudnn/convolution_plan.h"

#include <algorithm>
#include <array>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/quantity.h"
#include "common/base/status_macros.h"
#include "common/log/log.h"

namespace lockstep::worker::cuda {
namespace {

constexpr int64_t kAlignment = 16;  // bytes; that of tensors is larger

// Attributes of the operation of a pass. Input and output are those of the convolution, also where
// they are gradients.
struct PassAttributes {
  int descriptor;
  int input;
  int filter;
  int output;
  int convolution;
  int alpha;
  int beta;
};

PassAttributes AttributesOf(ConvolutionPass pass) {
  switch (pass) {
    case ConvolutionPass::kForward:
      return {kForwardDescriptor,  kForwardInput, kForwardFilter, kForwardOutput,
              kForwardConvolution, kForwardAlpha, kForwardBeta};
    case ConvolutionPass::kInputGradient:
      return {kBackwardDataDescriptor, kBackwardDataInput,       kBackwardDataFilter,
              kBackwardDataOutput,     kBackwardDataConvolution, kBackwardDataAlpha,
              kBackwardDataBeta};
    case ConvolutionPass::kKernelGradient:
      break;
  }
  return {kBackwardFilterDescriptor, kBackwardFilterInput,       kBackwardFilterFilter,
          kBackwardFilterOutput,     kBackwardFilterConvolution, kBackwardFilterAlpha,
          kBackwardFilterBeta};
}

// `count` images or filters, channels last; cuDNN names the dimensions in another order.
BackendDescriptor TensorOf(const CudnnLibrary* library, int64_t id, int64_t count,
                           const ImageShape& image, int data_type) {
  const std::array<int64_t, 4> dimensions = {count, image.channels, image.height, image.width};
  const std::array<int64_t, 4> strides = {image.num_elements(), 1, image.width * image.channels,
                                          image.channels};
  BackendDescriptor tensor(library, kTensorDescriptor);
  tensor.SetEnum(kTensorDataType, kTypeDataType, data_type);
  tensor.Set(kTensorDimensions, dimensions);
  tensor.Set(kTensorStrides, strides);
  tensor.Set(kTensorId, id);
  tensor.Set(kTensorAlignment, kAlignment);
  tensor.Finalize().IgnoreError();  // the error of what it becomes an attribute of
  return tensor;
}

BackendDescriptor ConvolutionOf(const CudnnLibrary* library, const Window& window) {
  constexpr std::array<int64_t, 2> kDilations = {1, 1};
  BackendDescriptor convolution(library, kConvolutionDescriptor);
  convolution.SetEnum(kConvolutionComputeType, kTypeDataType, kDataFloat);
  convolution.SetEnum(kConvolutionMode, kTypeConvolutionMode, kCrossCorrelation);
  convolution.Set(kConvolutionDimensions, static_cast<int64_t>(window.extent.size()));
  convolution.Set(kConvolutionDilations, kDilations);
  convolution.Set(kConvolutionStrides, window.stride);
  convolution.Set(kConvolutionPaddingBefore, window.pad_before);
  convolution.Set(kConvolutionPaddingAfter, window.pad_after);
  convolution.Finalize().IgnoreError();  // likewise
  return convolution;
}

absl::StatusOr<BackendDescriptor> GraphOf(const CudnnLibrary* library, const PlanTarget& target,
                                          const ConvolutionRequest& request) {
  const Conv2DOptions& options = request.options;
  const int data_type = request.precision == Precision::kBfloat16 ? kDataBfloat16 : kDataFloat;
  const PassAttributes attributes = AttributesOf(request.pass);
  BackendDescriptor operation(library, attributes.descriptor);
  operation.Set(attributes.input,
                TensorOf(library, kPlanInput, options.batch, options.input, data_type));
  operation.Set(attributes.filter, TensorOf(library, kPlanFilter, options.output.channels,
                                            options.filter(), data_type));
  operation.Set(attributes.output,
                TensorOf(library, kPlanOutput, options.batch, options.output, data_type));
  operation.Set(attributes.convolution, ConvolutionOf(library, options.window));
  operation.Set(attributes.alpha, 1.0f);
  operation.Set(attributes.beta, 0.0f);
  LOCKSTEP_RETURN_IF_ERROR(operation.Finalize());
  BackendDescriptor graph(library, kOperationGraphDescriptor);
  graph.Set(kOperationGraphOperations, operation);
  if (target.handle != nullptr) graph.Set(kOperationGraphHandle, target.handle);
  LOCKSTEP_RETURN_IF_ERROR(graph.Finalize());
  return graph;
}

absl::StatusOr<BackendDescriptor> EngineOf(const BackendDescriptor& configuration) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<BackendDescriptor> engines,
                            configuration.GetDescriptors(kEngineConfigEngine, kEngineDescriptor));
  if (engines.size() != 1) return absl::InternalError("cuDNN: a configuration without an engine");
  return engines[0];
}

// An engine says what it does to numbers.
absl::StatusOr<bool> IsAdmitted(const BackendDescriptor& engine, Precision precision) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<int> notes,
                            engine.GetEnums(kEngineNumericalNotes, kTypeNumericalNote));
  const auto has = [&](int note) { return std::ranges::find(notes, note) != notes.end(); };
  if (has(kNoteNondeterministic) || has(kNoteReducedPrecisionReduction)) return false;
  if (precision == Precision::kBfloat16) return true;
  // The type that float32 is converted to may be FP16, in which 65,520 is infinite.
  if (has(kNoteDownConvertInputs)) return false;
  return precision == Precision::kTf32 || !has(kNoteTensorCore);
}

// What the heuristics of this mode name for the graph, best first. UNIMPLEMENTED: they know nothing
// for it.
absl::StatusOr<std::vector<BackendDescriptor>> ConfigurationsOf(const CudnnLibrary* library,
                                                                const PlanTarget& target,
                                                                const BackendDescriptor& graph,
                                                                int mode) {
  BackendDescriptor heuristics(library, kHeuristicsDescriptor);
  heuristics.Set(kHeuristicsGraph, graph);
  heuristics.SetEnum(kHeuristicsMode, kTypeHeuristicMode, mode);
  if (target.described != nullptr) heuristics.Set(kHeuristicsDevice, *target.described);
  LOCKSTEP_RETURN_IF_ERROR(heuristics.Finalize());
  return heuristics.GetDescriptors(kHeuristicsResults, kEngineConfigDescriptor);
}

// Engines that need more workspace than they may have.
struct RefusedEngines {
  int64_t first_bytes = 0;  // 0: there is none
  int64_t least_bytes = 0;

  void Add(int64_t bytes) {
    if (first_bytes == 0) first_bytes = least_bytes = bytes;
    least_bytes = std::min(least_bytes, bytes);
  }
};

absl::Status NoEngine(const ConvolutionRequest& request, int64_t seen,
                      const RefusedEngines& refused) {
  const std::string remedy =
      refused.first_bytes > 0 ? absl::StrCat("; the least that one needs is ", refused.least_bytes,
                                             " bytes. Remedy: a smaller batch per tower, a greater "
                                             "--gpu_memory_limit, or a GPU with more memory")
                              : ". Remedy: another precision of the job, or --device=cpu";
  return absl::UnimplementedError(
      absl::StrCat("cuDNN has no deterministic engine for a convolution of ",
                   DescribeConvolution(request.options), " within ", request.most_workspace_bytes,
                   " bytes of workspace, of ", seen, " configurations", remedy));
}

}  // namespace

int64_t MostConvolutionWorkspace(uint64_t memory_bytes) {
  // In float32 without tensor cores input and output are copied into another layout: 588 MiB for
  // the largest convolution of ResNet-50, of 128 images.
  constexpr int64_t kLeast = int64_t{640} << 20;
  constexpr uint64_t kShare = 32;
  return std::max(kLeast, static_cast<int64_t>(memory_bytes / kShare));
}

std::string DescribeConvolution(const Conv2DOptions& options) {
  const auto image = [](const ImageShape& shape) {
    return absl::StrCat(shape.height, "x", shape.width, "x", shape.channels);
  };
  return absl::StrCat(options.batch, " images of ", image(options.input), " to ",
                      image(options.output));
}

void LogRefusedEngine(absl::string_view device, absl::string_view convolution, int64_t wanted,
                      int64_t most) {
  log::Info(absl::StrCat(
      device, ": a convolution of ", convolution,
      " does without the engine that cuDNN prefers, which may be faster: it needs ",
      BytesText(static_cast<uint64_t>(wanted)), " of workspace, more than ",
      BytesText(static_cast<uint64_t>(most)),
      ", a 32nd of the GPU's memory or of --gpu_memory_limit, 640 MiB at least. Remedy: a smaller "
      "batch per tower"));
}

absl::StatusOr<std::vector<ConvolutionPlan>> PlanConvolution(const CudnnLibrary* library,
                                                             const PlanTarget& target,
                                                             const ConvolutionRequest& request,
                                                             size_t most) {
  LOCKSTEP_ASSIGN_OR_RETURN(const BackendDescriptor graph, GraphOf(library, target, request));
  std::vector<ConvolutionPlan> plans;
  int64_t seen = 0;
  RefusedEngines refused;
  for (const int mode : {kHeuristicModeA, kHeuristicModeFallback}) {
    const absl::StatusOr<std::vector<BackendDescriptor>> configurations =
        ConfigurationsOf(library, target, graph, mode);
    if (absl::IsUnimplemented(configurations.status())) continue;
    LOCKSTEP_RETURN_IF_ERROR(configurations.status());
    seen += static_cast<int64_t>(configurations->size());
    for (const BackendDescriptor& configuration : *configurations) {
      LOCKSTEP_ASSIGN_OR_RETURN(const BackendDescriptor engine, EngineOf(configuration));
      LOCKSTEP_ASSIGN_OR_RETURN(const bool is_admitted, IsAdmitted(engine, request.precision));
      if (!is_admitted) continue;
      BackendDescriptor plan(library, kExecutionPlanDescriptor);
      plan.Set(kPlanEngineConfig, configuration);
      if (target.handle != nullptr) {
        plan.Set(kPlanHandle, target.handle);
      } else {
        plan.Set(kPlanDevice, *target.described);
      }
      const absl::Status planned = plan.Finalize();
      if (absl::IsUnimplemented(planned))
        continue;  // heuristics also name engines that cannot do it
      LOCKSTEP_RETURN_IF_ERROR(planned);
      LOCKSTEP_ASSIGN_OR_RETURN(const int64_t workspace, plan.GetInt64(kPlanWorkspaceSize));
      if (workspace > request.most_workspace_bytes) {
        refused.Add(workspace);
        continue;
      }
      LOCKSTEP_ASSIGN_OR_RETURN(const int64_t index, engine.GetInt64(kEngineGlobalIndex));
      plans.push_back({plan, index, workspace, seen, refused.first_bytes});
      if (plans.size() == most) return plans;
    }
    if (!plans.empty()) return plans;
  }
  return NoEngine(request, seen, refused);
}

}  // namespace lockstep::worker::cuda
