// Forward and backward by oneDNN's inner product on plain matrices: measured as fast as its blocked
// layouts, whose kernels would have to be converted in each step.
#include "worker/ops/dense.h"

#include "worker/ops/cpu/bias_gradient.h"
#include "worker/ops/cpu/cpu_op.h"
#include "worker/ops/cpu/layouts.h"
#include "worker/ops/cpu/registration.h"

namespace lockstep::worker::cpu {
namespace {

class DenseOp : public CpuOp {
  enum Variable { kKernel, kBias };

 public:
  DenseOp(OneDnn* onednn, const DenseOptions& options)
      : options_(options), bias_gradient_(options.batch, options.units) {
    using Forward = dnnl::inner_product_forward;
    using BackwardData = dnnl::inner_product_backward_data;
    using BackwardWeights = dnnl::inner_product_backward_weights;
    const Desc input = FloatDesc({options.batch, options.inputs}, Tag::nc);
    const Desc output = FloatDesc({options.batch, options.units}, Tag::nc);
    const Desc kernel = FloatDesc({options.units, options.inputs}, Tag::io);
    const Desc bias = FloatDesc({options.units}, Tag::x);
    const auto kind =
        options.training ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
    const dnnl::engine& engine = onednn->engine();

    const Forward::primitive_desc forward(options.bias
                                              ? Forward::desc(kind, input, kernel, bias, output)
                                              : Forward::desc(kind, input, kernel, output),
                                          WithRelu(options.relu), engine);
    forward_ = Primitive(onednn, forward,
                         {{DNNL_ARG_SRC, input},
                          {DNNL_ARG_WEIGHTS, kernel},
                          {DNNL_ARG_BIAS, options.bias ? bias : Desc()},
                          {DNNL_ARG_DST, output}});
    if (!options.training) return;
    if (options.variable_gradients) {
      backward_kernel_ = Primitive(
          onednn,
          BackwardWeights::primitive_desc(BackwardWeights::desc(input, kernel, output),
                                          Primitive::Attributes(), engine, forward),
          {{DNNL_ARG_SRC, input}, {DNNL_ARG_DIFF_WEIGHTS, kernel}, {DNNL_ARG_DIFF_DST, output}});
    }
    if (!options.input_gradient) return;
    backward_input_ = Primitive(
        onednn,
        BackwardData::primitive_desc(BackwardData::desc(input, kernel, output),
                                     Primitive::Attributes(), engine, forward),
        {{DNNL_ARG_DIFF_SRC, input}, {DNNL_ARG_WEIGHTS, kernel}, {DNNL_ARG_DIFF_DST, output}});
  }

  void RunForward(const ForwardArgs& args) override {
    forward_.Bind(DNNL_ARG_SRC, args.inputs[0].data);
    forward_.Bind(DNNL_ARG_WEIGHTS, args.variables[kKernel].data);
    if (options_.bias) forward_.Bind(DNNL_ARG_BIAS, args.variables[kBias].data);
    forward_.Bind(DNNL_ARG_DST, args.output.data);
    forward_.Run();
  }

  void RunBackward(const BackwardArgs& args) override {
    float* const gradient = args.output_gradient.as<float>().data();
    bias_gradient_.Run(options_.relu ? args.output.as<float>().data() : nullptr, gradient,
                       options_.bias && options_.variable_gradients
                           ? args.variable_gradients[kBias].as<float>().data()
                           : nullptr);

    if (options_.variable_gradients) {
      backward_kernel_.Bind(DNNL_ARG_SRC, args.inputs[0].data);
      backward_kernel_.Bind(DNNL_ARG_DIFF_WEIGHTS, args.variable_gradients[kKernel].data);
      backward_kernel_.Bind(DNNL_ARG_DIFF_DST, gradient);
      backward_kernel_.Run();
    }
    if (!options_.input_gradient) return;
    backward_input_.Bind(DNNL_ARG_DIFF_SRC, args.input_gradients[0].data);
    backward_input_.Bind(DNNL_ARG_WEIGHTS, args.variables[kKernel].data);
    backward_input_.Bind(DNNL_ARG_DIFF_DST, gradient);
    backward_input_.Run();
  }

 private:
  const DenseOptions options_;
  Primitive forward_;
  Primitive backward_kernel_;
  Primitive backward_input_;
  BiasGradient bias_gradient_;
};

std::unique_ptr<Op> MakeDense(OneDnn* onednn, const DenseOptions& options) {
  return std::make_unique<DenseOp>(onednn, options);
}

const Registration<&MakeDense> kDense;

}  // namespace
}  // namespace lockstep::worker::cpu
