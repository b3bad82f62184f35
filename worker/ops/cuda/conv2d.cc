// By cuDNN, which takes kernels [filters, height, width, channels]: they are transposed on their
// way in and out.
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

struct Conv2DKernels {
  Kernel<decltype(lockstep_swap_outer)> transpose;
  Kernel<decltype(lockstep_bias)> bias;
  Kernel<decltype(lockstep_relu_gradient)> relu_gradient;
  ColumnSums bias_gradient;
};

// nullopt: not wanted.
struct Conv2DPasses {
  std::optional<Convolution> forward;
  std::optional<Convolution> input_gradient;
  std::optional<Convolution> kernel_gradient;
};

class Conv2DOp : public Op {
  enum Variable { kKernel, kBias };

 public:
  // `kernel`: as large as the variable.
  Conv2DOp(const CudaContext* context, const Conv2DOptions& options, Conv2DKernels kernels,
           Conv2DPasses passes, DeviceBuffer kernel)
      : context_(context),
        options_(options),
        num_outputs_(options.batch * options.output.num_elements()),
        window_(options.window.extent[0] * options.window.extent[1] * options.input.channels),
        kernels_(std::move(kernels)),
        passes_(std::move(passes)),
        kernel_(std::move(kernel)) {}

  absl::Status Forward(const ForwardArgs& args, Stream* stream) override {
    Transpose(args.variables[kKernel].as<float>().data(), window_, filters(), kernel(), stream);
    float* const y = args.output.as<float>().data();
    LOCKSTEP_RETURN_IF_ERROR(Enqueue(&*passes_.forward, args.inputs[0].data, y, stream));
    if (!options_.bias && !options_.relu) return absl::OkStatus();
    const float* const bias = options_.bias ? args.variables[kBias].as<float>().data() : nullptr;
    kernels_.bias.Launch(stream, num_outputs_, y, bias, options_.relu, num_outputs_ / filters(),
                         filters());
    return absl::OkStatus();
  }

  absl::Status Backward(const BackwardArgs& args, Stream* stream) override {
    float* const gradient = args.output_gradient.as<float>().data();
    if (options_.relu) {
      kernels_.relu_gradient.Launch(stream, num_outputs_, gradient, args.output.as<float>().data(),
                                    gradient, num_outputs_);
    }
    if (options_.bias && options_.variable_gradients) {
      kernels_.bias_gradient.Launch(stream, args.variable_gradients[kBias].as<float>().data(),
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
    Transpose(kernel(), filters(), window_, args.variable_gradients[kKernel].as<float>().data(),
              stream);
    return absl::OkStatus();
  }

 private:
  int64_t filters() const { return options_.output.channels; }
  float* kernel() const { return reinterpret_cast<float*>(kernel_.get()); }

  // [rows, columns] to [columns, rows].
  void Transpose(const float* from, int64_t rows, int64_t columns, float* to,
                 Stream* stream) const {
    kernels_.transpose.Launch(stream, rows * columns, to, from, rows, columns, 1);
  }

  // `input`, `output`: of the convolution, or their gradients.
  absl::Status Enqueue(Convolution* pass, const void* input, float* output, Stream* stream) const {
    auto* const own = static_cast<CudaStream*>(stream);
    if (own->has_failed()) return absl::OkStatus();
    return pass->Enqueue({.input = static_cast<float*>(const_cast<void*>(input)),
                          .filter = kernel(),
                          .output = output,
                          .workspace = context_->workspace()},
                         own->get());
  }

  const CudaContext* const context_;
  const Conv2DOptions options_;
  const int64_t num_outputs_;
  const int64_t window_;  // elements of a filter
  const Conv2DKernels kernels_;
  Conv2DPasses passes_;
  const DeviceBuffer kernel_;
};

OpTable::MadeOr<Op> MakeConv2D(CudaContext* context, const Conv2DOptions& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto transpose,
                            LOCKSTEP_FIND_KERNEL(context, lockstep_swap_outer));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto bias, LOCKSTEP_FIND_KERNEL(context, lockstep_bias));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto relu_gradient,
                            LOCKSTEP_FIND_KERNEL(context, lockstep_relu_gradient));
  const ImageShape& output = options.output;
  LOCKSTEP_ASSIGN_OR_RETURN(
      ColumnSums bias_gradient,
      ColumnSums::Create(context, options.batch * output.height * output.width, output.channels));
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
  const int64_t elements = options.window.extent[0] * options.window.extent[1] *
                           options.input.channels * output.channels;
  LOCKSTEP_ASSIGN_OR_RETURN(
      DeviceBuffer kernel,
      context->device()->Allocate(static_cast<size_t>(elements) * sizeof(float)));
  return std::make_unique<Conv2DOp>(
      context, options, Conv2DKernels{transpose, bias, relu_gradient, std::move(bias_gradient)},
      std::move(passes), std::move(kernel));
}

const Registration<&MakeConv2D> kConv2D;

}  // namespace
}  // namespace lockstep::worker::cuda
