#include "worker/ops/batch_norm.h"

#include "common/base/status_macros.h"
#include "worker/ops/cuda/batch_norm.cuh"
#include "worker/ops/cuda/column_sums.h"
#include "worker/ops/cuda/registration.h"

namespace lockstep::worker::cuda {
namespace {

enum BatchNormVariable { kGamma, kBeta, kMovingMean, kMovingVariance };

template <typename T>
struct BatchNormKernels {
  Kernel<LOCKSTEP_FUNCTION_OF(T, lockstep_moment_parts)> moment_parts;
  Kernel<decltype(lockstep_moments)> moments;
  Kernel<LOCKSTEP_FUNCTION_OF(T, lockstep_batch_norm)> normalise;
  Kernel<LOCKSTEP_FUNCTION_OF(T, lockstep_batch_norm_gradient_parts)> gradient_parts;
  Kernel<decltype(lockstep_sum_column_parts)> sum_parts;
  Kernel<LOCKSTEP_FUNCTION_OF(T, lockstep_batch_norm_gradient)> gradient;
  Kernel<LOCKSTEP_FUNCTION_OF(T, lockstep_frozen_batch_norm_gradient)> frozen_gradient;
  Kernel<decltype(lockstep_follow)> follow;
};

template <typename T>
class BatchNormOp : public Op {
 public:
  // Of each channel: the moments of the last batch, and gradients that nobody else wants.
  enum Own { kMean, kVariance, kGammaGradient, kBetaGradient, kNumOwn };

  // `own`: kNumOwn floats for each channel; null where moments are not taken.
  BatchNormOp(const CudaContext* context, const BatchNormOptions& options,
              const BatchNormKernels<T>& kernels, DeviceBuffer own)
      : context_(context),
        options_(options),
        rows_(options.batch * options.positions),
        channels_(options.channels),
        num_parts_(NumColumnParts(rows_, channels_)),
        kernels_(kernels),
        own_(std::move(own)) {}

  absl::Status Forward(const ForwardArgs& args, Stream* stream) override {
    const T* const x = args.inputs[0].as<T>().data();
    const bool of_batch = args.mode == Mode::kTraining && !options_.frozen;
    if (of_batch) {
      kernels_.moment_parts.Launch(stream, num_parts_ * NumColumnGroups(channels_), parts(), x,
                                   num_parts_, rows_, channels_);
      kernels_.moments.LaunchBlocks(stream, channels_, own(kMean), own(kVariance), parts(),
                                    num_parts_, rows_, channels_);
    }
    kernels_.normalise.Launch(stream, rows_ * NumColumnGroups(channels_),
                              args.output.as<T>().data(), x,
                              of_batch ? own(kMean) : Data(args.variables[kMovingMean]),
                              of_batch ? own(kVariance) : Data(args.variables[kMovingVariance]),
                              Data(args.variables[kGamma]), Data(args.variables[kBeta]),
                              options_.epsilon, options_.relu, rows_, channels_);
    return absl::OkStatus();
  }

  absl::Status Backward(const BackwardArgs& args, Stream* stream) override {
    if (!options_.variable_gradients && !options_.input_gradient) return absl::OkStatus();
    const T* const gradient = args.output_gradient.as<T>().data();
    if (options_.frozen) {
      kernels_.frozen_gradient.Launch(
          stream, rows_ * NumColumnGroups(channels_), args.input_gradients[0].as<T>().data(),
          args.output.as<T>().data(), gradient, Data(args.variables[kMovingVariance]),
          Data(args.variables[kGamma]), options_.epsilon, options_.relu, rows_, channels_);
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
    const T* const x = args.inputs[0].as<T>().data();
    const float* const of_gamma = Data(args.variables[kGamma]);
    const float* const of_beta = Data(args.variables[kBeta]);
    kernels_.gradient_parts.Launch(stream, num_parts_ * NumColumnGroups(channels_), parts(), x,
                                   gradient, own(kMean), own(kVariance), of_gamma, of_beta,
                                   options_.epsilon, options_.relu, num_parts_, rows_, channels_);
    kernels_.sum_parts.LaunchBlocks(stream, channels_, beta, parts(), num_parts_, channels_);
    kernels_.sum_parts.LaunchBlocks(stream, channels_, gamma, parts() + num_parts_ * channels_,
                                    num_parts_, channels_);
    if (!options_.input_gradient) return absl::OkStatus();
    kernels_.gradient.Launch(stream, rows_ * NumColumnGroups(channels_),
                             args.input_gradients[0].as<T>().data(), x, gradient, own(kMean),
                             own(kVariance), of_gamma, of_beta, gamma, beta, options_.epsilon,
                             options_.relu, rows_, channels_);
    return absl::OkStatus();
  }

 private:
  static const float* Data(const TensorView& tensor) { return tensor.as<float>().data(); }
  static float* To(const BackwardArgs& args, BatchNormVariable variable) {
    return args.variable_gradients[variable].as<float>().data();
  }

  float* own(Own of) const { return reinterpret_cast<float*>(own_.get()) + of * channels_; }
  double* parts() const { return static_cast<double*>(context_->workspace()); }

  void Follow(BatchNormVariable statistic, const float* of_batch, const BackwardArgs& args,
              Stream* stream) const {
    kernels_.follow.Launch(stream, channels_, To(args, statistic), Data(args.variables[statistic]),
                           of_batch, options_.momentum, channels_);
  }

  const CudaContext* const context_;
  const BatchNormOptions options_;
  const int64_t rows_;
  const int64_t channels_;
  const int64_t num_parts_;
  const BatchNormKernels<T> kernels_;
  const DeviceBuffer own_;
};

template <typename T>
OpTable::MadeOr<Op> MakeBatchNorm(CudaContext* context, const BatchNormOptions& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto moment_parts,
                            LOCKSTEP_FIND_KERNEL_OF(context, T, lockstep_moment_parts));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto moments, LOCKSTEP_FIND_KERNEL(context, lockstep_moments));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto normalise,
                            LOCKSTEP_FIND_KERNEL_OF(context, T, lockstep_batch_norm));
  LOCKSTEP_ASSIGN_OR_RETURN(
      const auto gradient_parts,
      LOCKSTEP_FIND_KERNEL_OF(context, T, lockstep_batch_norm_gradient_parts));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto sum_parts,
                            LOCKSTEP_FIND_KERNEL(context, lockstep_sum_column_parts));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto gradient,
                            LOCKSTEP_FIND_KERNEL_OF(context, T, lockstep_batch_norm_gradient));
  LOCKSTEP_ASSIGN_OR_RETURN(
      const auto frozen_gradient,
      LOCKSTEP_FIND_KERNEL_OF(context, T, lockstep_frozen_batch_norm_gradient));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto follow, LOCKSTEP_FIND_KERNEL(context, lockstep_follow));
  DeviceBuffer own;
  if (options.training && !options.frozen) {
    const int64_t rows = options.batch * options.positions;
    const auto channels = static_cast<size_t>(options.channels);
    LOCKSTEP_RETURN_IF_ERROR(
        context->ReserveWorkspace(2 * static_cast<size_t>(NumColumnParts(rows, options.channels)) *
                                  channels * sizeof(double)));
    LOCKSTEP_ASSIGN_OR_RETURN(
        own, context->device()->Allocate(BatchNormOp<T>::kNumOwn * channels * sizeof(float)));
  }
  const BatchNormKernels<T> kernels{moment_parts, moments,  normalise,       gradient_parts,
                                    sum_parts,    gradient, frozen_gradient, follow};
  return std::make_unique<BatchNormOp<T>>(context, options, kernels, std::move(own));
}

const Registration<&MakeBatchNorm<float>, &MakeBatchNorm<BFloat16>> kBatchNorm;

}  // namespace
}  // namespace lockstep::worker::cuda
