#include "worker/ops/cuda/clipping.cuh"

#include <algorithm>

#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "worker/ops/cuda/registration.h"
#include "worker/ops/gradient_op.h"

namespace lockstep::worker::cuda {
namespace {

// Blocks that sum the squares of a tensor: enough to read a large one at the speed of memory.
constexpr int64_t kMostParts = 1024;
constexpr int64_t kElementsPerPart = 16 * kRowThreads;

struct ClippingKernels {
  Kernel<decltype(lockstep_clip_value)> clip_value;
  Kernel<decltype(lockstep_square_parts)> square_parts;
  Kernel<decltype(lockstep_sum_parts)> sum_parts;
  Kernel<decltype(lockstep_norm_divisor)> norm_divisor;
  Kernel<decltype(lockstep_global_norm_scale)> global_norm_scale;
  Kernel<decltype(lockstep_clip_norm)> clip_norm;
  Kernel<decltype(lockstep_clip_global_norm)> clip_global_norm;
};

class ClippingOp : public GradientOp {
 public:
  // `parts`: kMostParts doubles; `sums`: a double for each tensor of a call, and a float at the
  // end. Null where there are no norms.
  ClippingOp(const ClippingOptions& options, const ClippingKernels& kernels, DeviceBuffer parts,
             DeviceBuffer sums)
      : options_(options), kernels_(kernels), parts_(std::move(parts)), sums_(std::move(sums)) {}

  absl::Status Run(const Args& args, Stream* stream) override {
    LOCKSTEP_CHECK(static_cast<int64_t>(args.outputs.size()) <= options_.tensors);
    switch (options_.rule.kind) {
      case ClippingKind::kNone:
        break;
      case ClippingKind::kValue:
        for (const MutableTensorView& tensor : args.outputs) {
          kernels_.clip_value.Launch(stream, tensor.num_elements(), tensor.as<float>().data(),
                                     options_.rule.limit, tensor.num_elements());
        }
        break;
      case ClippingKind::kNorm:
        for (const MutableTensorView& tensor : args.outputs) ClipByNorm(tensor, stream);
        break;
      case ClippingKind::kGlobalNorm:
        ClipByGlobalNorm(args.outputs, stream);
    }
    return absl::OkStatus();
  }

 private:
  double* sums() const { return reinterpret_cast<double*>(sums_.get()); }
  // What the elements are divided or multiplied by.
  float* factor() const { return reinterpret_cast<float*>(sums() + options_.tensors); }

  void SumSquares(const MutableTensorView& tensor, double* sum, Stream* stream) const {
    double* const parts = reinterpret_cast<double*>(parts_.get());
    const int64_t elements = tensor.num_elements();
    const int64_t count = std::clamp<int64_t>(elements / kElementsPerPart, 1, kMostParts);
    kernels_.square_parts.LaunchBlocks(stream, count, parts, tensor.as<float>().data(), elements);
    kernels_.sum_parts.LaunchBlocks(stream, 1, sum, parts, count);
  }

  void ClipByNorm(const MutableTensorView& tensor, Stream* stream) const {
    SumSquares(tensor, sums(), stream);
    kernels_.norm_divisor.Launch(stream, 1, factor(), sums(), options_.rule.limit);
    kernels_.clip_norm.Launch(stream, tensor.num_elements(), tensor.as<float>().data(), factor(),
                              options_.rule.limit, tensor.num_elements());
  }

  void ClipByGlobalNorm(std::span<const MutableTensorView> tensors, Stream* stream) const {
    for (size_t i = 0; i < tensors.size(); ++i) SumSquares(tensors[i], sums() + i, stream);
    kernels_.global_norm_scale.Launch(stream, 1, factor(), sums(),
                                      static_cast<int64_t>(tensors.size()), options_.rule.limit);
    for (const MutableTensorView& tensor : tensors) {
      kernels_.clip_global_norm.Launch(stream, tensor.num_elements(), tensor.as<float>().data(),
                                       factor(), tensor.num_elements());
    }
  }

  const ClippingOptions options_;
  const ClippingKernels kernels_;
  const DeviceBuffer parts_;
  const DeviceBuffer sums_;
};

OpTable::MadeOr<GradientOp> MakeClipping(CudaContext* context, const ClippingOptions& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto clip_value,
                            LOCKSTEP_FIND_KERNEL(context, lockstep_clip_value));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto square_parts,
                            LOCKSTEP_FIND_KERNEL(context, lockstep_square_parts));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto sum_parts,
                            LOCKSTEP_FIND_KERNEL(context, lockstep_sum_parts));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto norm_divisor,
                            LOCKSTEP_FIND_KERNEL(context, lockstep_norm_divisor));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto global_norm_scale,
                            LOCKSTEP_FIND_KERNEL(context, lockstep_global_norm_scale));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto clip_norm,
                            LOCKSTEP_FIND_KERNEL(context, lockstep_clip_norm));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto clip_global_norm,
                            LOCKSTEP_FIND_KERNEL(context, lockstep_clip_global_norm));
  DeviceBuffer parts;
  DeviceBuffer sums;
  const ClippingKind kind = options.rule.kind;
  if (kind == ClippingKind::kNorm || kind == ClippingKind::kGlobalNorm) {
    LOCKSTEP_ASSIGN_OR_RETURN(parts, context->device()->Allocate(kMostParts * sizeof(double)));
    const size_t bytes = static_cast<size_t>(options.tensors) * sizeof(double) + sizeof(float);
    LOCKSTEP_ASSIGN_OR_RETURN(sums, context->device()->Allocate(bytes));
  }
  const ClippingKernels kernels{clip_value,        square_parts, sum_parts,       norm_divisor,
                                global_norm_scale, clip_norm,    clip_global_norm};
  return std::make_unique<ClippingOp>(options, kernels, std::move(parts), std::move(sums));
}

const Registration<&MakeClipping> kClipping;

}  // namespace
}  // namespace lockstep::worker::cuda
