#include "worker/ops/batch_norm.h"

#include "common/base/status_macros.h"
#include "worker/ops/cuda/batch_norm.cuh"
#include "worker/ops/cuda/column_sums.h"
#include "worker/ops/cuda/registration.h"

namespace lockstep::worker::cuda {
namespace {

struct BatchNormKernels {
  Kernel<decltype(lockstep_moment_parts)> moment_parts;
  Kernel<decltype(lockstep_moments)> moments;
  Kernel<decltype(lockstep_batch_norm)> normalise;
  Kernel<decltype(lockstep_batch_norm_gradient_parts)> gradient_parts;
  Kernel<decltype(lockstep_sum_column_parts)> sum_parts;
  Kernel<decltype(lockstep_batch_norm_gradient)> gradient;
  Kernel<decltype(lockstep_frozen_batch_norm_gradient)> frozen_gradient;
  Kernel<decltype(lockstep_follow)> follow;
};

class BatchNormOp : public Op {
  enum Variable { kGamma, kBeta, kMovingMean, kMovingVariance };

 public:
  // Of each channel: the moments of the last batch, and gradients that nobody else wants.
  enum Own { kMean, kVariance, kGammaGradient, kBetaGradient, kNumOwn };

  // `own`: kNumOwn floats for each channel; null where moments are not taken.
  BatchNormOp(const CudaContext* context, const BatchNormOptions& options,
              const BatchNormKernels& kernels, DeviceBuffer own)
      : context_(context),
        options_(options),
        rows_(options.batch * options.positions),
        channels_(options.channels),
        num_parts_(NumColumnParts(rows_, channels_)),
        kernels_(kernels),
        own_(std::move(own)) {}

  absl::Status Forward(const ForwardArgs& args, Stream* stream) override {
    const float* const x = Data(args.inputs[0]);
    const bool of_batch = args.mode == Mode::kTraining && !options_.frozen;
    if (of_batch) {
      kernels_.moment_parts.Launch(stream, num_parts_ * channels_, parts(), x, num_parts_, rows_,
                                   channels_);
      kernels_.moments.LaunchBlocks(stream, channels_, own(kMean), own(kVariance), parts(),
                                    num_parts_, rows_, channels_);
    }
    kernels_.normalise.Launch(stream, rows_ * channels_, args.output.as<float>().data(), x,
                              of_batch ? own(kMean) : Data(args.variables[kMovingMean]),
                              of_batch ? own(kVariance) : Data(args.variables[kMovingVariance]),
                              Data(args.variables[kGamma]), Data(args.variables[kBeta]),
                              options_.epsilon, options_.relu, rows_, channels_);
    return absl::OkStatus();
  }

  absl::Status Backward(const BackwardArgs& args, Stream* stream) override {
    if (!options_.variable_gradients && !options_.input_gradient) return absl::OkStatus();
    const float* const y = Data(args.output);
    const float* const gradient = Data(args.output_gradient);
    if (options_.frozen) {
      kernels_.frozen_gradient.Launch(
          stream, rows_ * channels_, args.input_gradients[0].as<float>().data(), y, gradient,
          Data(args.variables[kMovingVariance]), Data(args.variables[kGamma]), options_.epsilon,
          options_.relu, rows_, channels_);
      return absl::OkStatus();
    }
    const bool is_wanted = options_.variable_gradients;
    if (is_wanted) {
      Follow(kMovingMean, own(kMean), args, stream);
      Follow(kMovingVariance, own(kVariance), args, stream);
    }
    // That of the input is made of the other two.
    float* const gamma = is_wanted ? To(args, kGamma) : own(kGammaGradient);
    float* const beta = is_wanted ? To(args, kBeta) : own(kBetaGradient);
    const float* const x = Data(args.inputs[0]);
    kernels_.gradient_parts.Launch(stream, num_parts_ * channels_, parts(), x, y, gradient,
                                   own(kMean), own(kVariance), options_.epsilon, options_.relu,
                                   num_parts_, rows_, channels_);
    kernels_.sum_parts.LaunchBlocks(stream, channels_, beta, parts(), num_parts_, channels_);
    kernels_.sum_parts.LaunchBlocks(stream, channels_, gamma, parts() + num_parts_ * channels_,
                                    num_parts_, channels_);
    if (!options_.input_gradient) return absl::OkStatus();
    kernels_.gradient.Launch(stream, rows_ * channels_, args.input_gradients[0].as<float>().data(),
                             x, y, gradient, own(kMean), own(kVariance),
                             Data(args.variables[kGamma]), gamma, beta, options_.epsilon,
                             options_.relu, rows_, channels_);
    return absl::OkStatus();
  }

 private:
  static const float* Data(const TensorView& tensor) { return tensor.as<float>().data(); }
  static float* To(const BackwardArgs& args, Variable variable) {
    return args.variable_gradients[variable].as<float>().data();
  }

  float* own(Own of) const { return reinterpret_cast<float*>(own_.get()) + of * channels_; }
  double* parts() const { return static_cast<double*>(context_->workspace()); }

  void Follow(Variable statistic, const float* of_batch, const BackwardArgs& args,
              Stream* stream) const {
    kernels_.follow.Launch(stream, channels_, To(args, statistic), Data(args.variables[statistic]),
                           of_batch, options_.momentum, channels_);
  }

  const CudaContext* const context_;
  const BatchNormOptions options_;
  const int64_t rows_;
  const int64_t channels_;
  const int64_t num_parts_;
  const BatchNormKernels kernels_;
  const DeviceBuffer own_;
};

OpTable::MadeOr<Op> MakeBatchNorm(CudaContext* context, const BatchNormOptions& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto moment_parts,
                            LOCKSTEP_FIND_KERNEL(context, lockstep_moment_parts));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto moments, LOCKSTEP_FIND_KERNEL(context, lockstep_moments));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto normalise,
                            LOCKSTEP_FIND_KERNEL(context, lockstep_batch_norm));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto gradient_parts,
                            LOCKSTEP_FIND_KERNEL(context, lockstep_batch_norm_gradient_parts));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto sum_parts,
                            LOCKSTEP_FIND_KERNEL(context, lockstep_sum_column_parts));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto gradient,
                            LOCKSTEP_FIND_KERNEL(context, lockstep_batch_norm_gradient));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto frozen_gradient,
                            LOCKSTEP_FIND_KERNEL(context, lockstep_frozen_batch_norm_gradient));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto follow, LOCKSTEP_FIND_KERNEL(context, lockstep_follow));
  DeviceBuffer own;
  if (options.training && !options.frozen) {
    const int64_t rows = options.batch * options.positions;
    const auto channels = static_cast<size_t>(options.channels);
    LOCKSTEP_RETURN_IF_ERROR(
        context->ReserveWorkspace(2 * static_cast<size_t>(NumColumnParts(rows, options.channels)) *
                                  channels * sizeof(double)));
    LOCKSTEP_ASSIGN_OR_RETURN(
        own, context->device()->Allocate(BatchNormOp::kNumOwn * channels * sizeof(float)));
  }
  const BatchNormKernels kernels{moment_parts, moments,  normalise,       gradient_parts,
                                 sum_parts,    gradient, frozen_gradient, follow};
  return std::make_unique<BatchNormOp>(context, options, kernels, std::move(own));
}

const Registration<&MakeBatchNorm> kBatchNorm;

}  // namespace
}  // namespace lockstep::worker::cuda
