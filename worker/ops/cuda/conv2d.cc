// By cuDNN, which takes kernels [filters, height, width, channels]: they are transposed on their
// way in and out. Where images are bfloat16 both ways round: cuDNN has no engine whose gradient of
// the kernel is float32 there.
#include "worker/ops/conv2d.h"

#include <optional>

#include "common/base/status_macros.h"
#include "worker/ops/cuda/activation.cuh"
#include "worker/ops/cuda/bias.cuh"
#include "worker/ops/cuda/column_sums.h"
#include "worker/ops/cuda/registration.h"
#include "worker/ops/cuda/swap_outer.cuh"

namespace lockstep::worker::cuda {
namespace {

enum Conv2DVariable { kConv2DKernel, kConv2DBias };

// Transposes of the kernel and of its gradient.
template <typename T>
using TransposeTo =
    std::conditional_t<std::is_same_v<T, BFloat16>, decltype(lockstep_swap_outer_to_bf16),
                       decltype(lockstep_swap_outer)>;
template <typename T>
using TransposeFrom =
    std::conditional_t<std::is_same_v<T, BFloat16>, decltype(lockstep_swap_outer_from_bf16),
                       decltype(lockstep_swap_outer)>;

template <typename T>
struct Conv2DKernels {
  Kernel<TransposeTo<T>> transpose;
  Kernel<TransposeFrom<T>> transpose_gradient;
  Kernel<LOCKSTEP_FUNCTION_OF(T, lockstep_bias)> bias;
  Kernel<LOCKSTEP_FUNCTION_OF(T, lockstep_relu_gradient)> relu_gradient;
  ColumnSumsOf<T> bias_gradient;
};

// nullopt: not wanted.
struct Conv2DPasses {
  std::optional<Convolution> forward;
  std::optional<Convolution> input_gradient;
  std::optional<Convolution> kernel_gradient;
};

template <typename T>
class Conv2DOp : public Op {
 public:
  // `kernel`: as many elements as the variable has.
  Conv2DOp(const CudaContext* context, const Conv2DOptions& options, Conv2DKernels<T> kernels,
           Conv2DPasses passes, DeviceBuffer kernel)
      : context_(context),
        options_(options),
        num_outputs_(options.batch * options.output.num_elements()),
        window_(options.filter().num_elements()),
        kernels_(std::move(kernels)),
        passes_(std::move(passes)),
        kernel_(std::move(kernel)) {}

  absl::Status Forward(const ForwardArgs& args, Stream* stream) override {
    kernels_.transpose.Launch(stream, window_ * filters(), kernel(),
                              args.variables[kConv2DKernel].as<float>().data(), window_, filters(),
                              1);
    T* const y = args.output.as<T>().data();
    LOCKSTEP_RETURN_IF_ERROR(Enqueue(&*passes_.forward, args.inputs[0].data, y, stream));
    if (!options_.bias && !options_.relu) return absl::OkStatus();
    const float* const bias =
        options_.bias ? args.variables[kConv2DBias].as<float>().data() : nullptr;
    kernels_.bias.Launch(stream, num_outputs_, y, bias, options_.relu, num_outputs_ / filters(),
                         filters());
    return absl::OkStatus();
  }

  absl::Status Backward(const BackwardArgs& args, Stream* stream) override {
    T* const gradient = args.output_gradient.as<T>().data();
    if (options_.relu) {
      kernels_.relu_gradient.Launch(stream, num_outputs_, gradient, args.output.as<T>().data(),
                                    gradient, num_outputs_);
    }
    if (options_.bias && options_.variable_gradients) {
      kernels_.bias_gradient.Launch(stream, args.variable_gradients[kConv2DBias].as<float>().data(),
                                    gradient);
    }
    if (passes_.input_gradient.has_value()) {
      LOCKSTEP_RETURN_IF_ERROR(
          Enqueue(&*passes_.input_gradient, args.input_gradients[0].data, gradient, stream));
    }
    if (!passes_.kernel_gradient.has_value()) return absl::OkStatus();
    // The transposed kernel has served: its gradient takes its place.
    LOCKSTEP_RETURN_IF_ERROR(
        Enqueue(&*passes_.kernel_gradient, args.inputs[0].data, gradient, stream));
    kernels_.transpose_gradient.Launch(stream, window_ * filters(),
                                       args.variable_gradients[kConv2DKernel].as<float>().data(),
                                       kernel(), filters(), window_, 1);
    return absl::OkStatus();
  }

 private:
  int64_t filters() const { return options_.output.channels; }
  T* kernel() const { return reinterpret_cast<T*>(kernel_.get()); }

  // `input`, `output`: of the convolution, or their gradients.
  absl::Status Enqueue(Convolution* pass, const void* input, T* output, Stream* stream) const {
    auto* const own = static_cast<CudaStream*>(stream);
    if (own->has_failed()) return absl::OkStatus();
    return pass->Enqueue({.input = const_cast<void*>(input),
                          .filter = kernel_.get(),
                          .output = output,
                          .workspace = context_->workspace()},
                         own->get());
  }

  const CudaContext* const context_;
  const Conv2DOptions options_;
  const int64_t num_outputs_;
  const int64_t window_;  // elements of a filter
  const Conv2DKernels<T> kernels_;
  Conv2DPasses passes_;
  const DeviceBuffer kernel_;
};

template <typename T>
OpTable::MadeOr<Op> MakeConv2D(CudaContext* context, const Conv2DOptions& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(
      const auto transpose,
      context->Find<TransposeTo<T>>(std::is_same_v<T, BFloat16> ? "lockstep_swap_outer_to_bf16"
                                                                : "lockstep_swap_outer"));
  LOCKSTEP_ASSIGN_OR_RETURN(
      const auto transpose_gradient,
      context->Find<TransposeFrom<T>>(std::is_same_v<T, BFloat16> ? "lockstep_swap_outer_from_bf16"
                                                                  : "lockstep_swap_outer"));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto bias, LOCKSTEP_FIND_KERNEL_OF(context, T, lockstep_bias));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto relu_gradient,
                            LOCKSTEP_FIND_KERNEL_OF(context, T, lockstep_relu_gradient));
  const ImageShape& output = options.output;
  LOCKSTEP_ASSIGN_OR_RETURN(
      auto bias_gradient,
      ColumnSumsOf<T>::Create(context, options.batch * output.height * output.width,
                              output.channels));
  Conv2DPasses passes;
  LOCKSTEP_ASSIGN_OR_RETURN(passes.forward,
                            context->MakeConvolution(options, ConvolutionPass::kForward));
  if (options.training && options.input_gradient) {
    LOCKSTEP_ASSIGN_OR_RETURN(passes.input_gradient,
                              context->MakeConvolution(options, ConvolutionPass::kInputGradient));
  }
  if (options.training && options.variable_gradients) {
    LOCKSTEP_ASSIGN_OR_RETURN(passes.kernel_gradient,
                              context->MakeConvolution(options, ConvolutionPass::kKernelGradient));
  }
  const int64_t elements = options.filter().num_elements() * output.channels;
  LOCKSTEP_ASSIGN_OR_RETURN(DeviceBuffer kernel,
                            context->device()->Allocate(static_cast<size_t>(elements) * sizeof(T)));
  return std::make_unique<Conv2DOp<T>>(context, options,
                                       Conv2DKernels<T>{transpose, transpose_gradient, bias,
                                                        relu_gradient, std::move(bias_gradient)},
                                       std::move(passes), std::move(kernel));
}

const Registration<&MakeConv2D<float>, &MakeConv2D<BFloat16>> kConv2D;

}  // namespace
}  // namespace lockstep::worker::cuda
