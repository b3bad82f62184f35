// Convolution by oneDNN. Images stay in rows of channels throughout: its kernels for that layout
// were measured up to twice as fast as for the blocked one, and nothing large is ever converted.
// Only the small kernels are, in each pass.
#include "worker/ops/conv2d.h"

#include "worker/ops/cpu/bias_gradient.h"
#include "worker/ops/cpu/conv2d_input_gradient.h"
#include "worker/ops/cpu/cpu_op.h"
#include "worker/ops/cpu/layouts.h"
#include "worker/ops/cpu/registration.h"
#include "worker/ops/cpu/relu.h"

namespace lockstep::worker::cpu {
namespace {

class Conv2DOp : public CpuOp {
  enum Variable { kKernel, kBias };

 public:
  Conv2DOp(OneDnn* onednn, const Conv2DOptions& options)
      : options_(options),
        bias_gradient_(options.batch * options.output.height * options.output.width,
                       options.output.channels) {
    using Forward = dnnl::convolution_forward;
    using BackwardWeights = dnnl::convolution_backward_weights;
    constexpr auto kAlgorithm = dnnl::algorithm::convolution_direct;
    const Window& window = options.window;
    const Desc input = ImageDesc(options.batch, options.input);
    const Desc output = ImageDesc(options.batch, options.output);
    const Desc plain = FloatDesc(KernelDims(options), Tag::hwio);
    const Desc kernel = FloatDesc(KernelDims(options), Tag::any);
    const Desc bias = FloatDesc({options.output.channels}, Tag::x);
    const Dims stride = Pair(window.stride);
    const Dims before = Pair(window.pad_before);
    const Dims after = Pair(window.pad_after);
    const auto kind =
        options.training ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
    const dnnl::engine& engine = onednn->engine();

    const Forward::primitive_desc forward(
        options.bias
            ? Forward::desc(kind, kAlgorithm, input, kernel, bias, output, stride, before, after)
            : Forward::desc(kind, kAlgorithm, input, kernel, output, stride, before, after),
        Primitive::Attributes(), engine);
    forward_kernel_ = Layout(onednn, plain, forward.weights_desc(), Layout::Use::kRead);
    forward_ = Primitive(onednn, forward,
                         {{DNNL_ARG_SRC, input},
                          {DNNL_ARG_WEIGHTS, forward.weights_desc()},
                          {DNNL_ARG_BIAS, options.bias ? bias : Desc()},
                          {DNNL_ARG_DST, output}});
    if (!options.training) return;
    if (options.variable_gradients) {
      const BackwardWeights::primitive_desc weights(
          BackwardWeights::desc(kAlgorithm, input, kernel, output, stride, before, after),
          Primitive::Attributes(), engine, forward);
      kernel_gradient_ = Layout(onednn, plain, weights.diff_weights_desc(), Layout::Use::kWrite);
      backward_kernel_ = Primitive(onednn, weights,
                                   {{DNNL_ARG_SRC, input},
                                    {DNNL_ARG_DIFF_WEIGHTS, weights.diff_weights_desc()},
                                    {DNNL_ARG_DIFF_DST, output}});
    }
    if (!options.input_gradient) return;
    input_gradient_ = Conv2DInputGradient(onednn, options, forward);
  }

  void RunForward(const ForwardArgs& args) override {
    forward_.Bind(DNNL_ARG_SRC, args.inputs[0].data);
    forward_.Bind(DNNL_ARG_WEIGHTS, forward_kernel_.Convert(args.variables[kKernel].data));
    if (options_.bias) forward_.Bind(DNNL_ARG_BIAS, args.variables[kBias].data);
    forward_.Bind(DNNL_ARG_DST, args.output.data);
    forward_.Run();
    if (options_.relu) ApplyRelu(args.output.as<float>());
  }

  void RunBackward(const BackwardArgs& args) override {
    float* const gradient = args.output_gradient.as<float>().data();
    bias_gradient_.Run(options_.relu ? args.output.as<float>().data() : nullptr, gradient,
                       options_.bias && options_.variable_gradients
                           ? args.variable_gradients[kBias].as<float>().data()
                           : nullptr);

    if (options_.variable_gradients) {
      void* const kernel_gradient = args.variable_gradients[kKernel].data;
      backward_kernel_.Bind(DNNL_ARG_SRC, args.inputs[0].data);
      backward_kernel_.Bind(DNNL_ARG_DIFF_WEIGHTS, kernel_gradient_.Target(kernel_gradient));
      backward_kernel_.Bind(DNNL_ARG_DIFF_DST, gradient);
      backward_kernel_.Run();
      kernel_gradient_.Finish(kernel_gradient);
    }
    if (!options_.input_gradient) return;
    input_gradient_.Run(gradient, args.variables[kKernel].as<float>().data(),
                        args.input_gradients[0].as<float>().data());
  }

 private:
  const Conv2DOptions options_;
  Layout forward_kernel_;
  Primitive forward_;
  Layout kernel_gradient_;
  Primitive backward_kernel_;
  Conv2DInputGradient input_gradient_;
  BiasGradient bias_gradient_;
};

std::unique_ptr<Op> MakeConv2D(OneDnn* onednn, const Conv2DOptions& options) {
  return std::make_unique<Conv2DOp>(onednn, options);
}

const Registration<&MakeConv2D> kConv2D;

}  // namespace
}  // namespace lockstep::worker::cpu
