#include "worker/ops/cpu/inner_product.h"

#include "worker/ops/cpu/layouts.h"

namespace lockstep::worker::cpu {

InnerProduct::InnerProduct(OneDnn* onednn, const InnerProductOptions& options)
    : bias_(options.bias) {
  using Forward = dnnl::inner_product_forward;
  using BackwardData = dnnl::inner_product_backward_data;
  using BackwardWeights = dnnl::inner_product_backward_weights;
  const Desc input = FloatDesc({options.rows, options.inputs}, Tag::nc);
  const Desc output = FloatDesc({options.rows, options.outputs}, Tag::nc);
  const Desc kernel = FloatDesc({options.outputs, options.inputs}, Tag::io);
  const Desc bias = FloatDesc({options.outputs}, Tag::x);
  const auto kind =
      options.training ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
  const dnnl::engine& engine = onednn->engine();

  const Forward::primitive_desc forward(options.bias
                                            ? Forward::desc(kind, input, kernel, bias, output)
                                            : Forward::desc(kind, input, kernel, output),
                                        Primitive::Attributes(), engine);
  forward_ = Primitive(onednn, forward,
                       {{DNNL_ARG_SRC, input},
                        {DNNL_ARG_WEIGHTS, kernel},
                        {DNNL_ARG_BIAS, options.bias ? bias : Desc()},
                        {DNNL_ARG_DST, output}});
  if (!options.training) return;
  if (options.kernel_gradient) {
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

void InnerProduct::Forward(const float* x, const float* kernel, const float* bias, float* y) {
  forward_.Bind(DNNL_ARG_SRC, x);
  forward_.Bind(DNNL_ARG_WEIGHTS, kernel);
  if (bias_) forward_.Bind(DNNL_ARG_BIAS, bias);
  forward_.Bind(DNNL_ARG_DST, y);
  forward_.Run();
}

void InnerProduct::KernelGradient(const float* x, const float* y_gradient, float* kernel_gradient) {
  backward_kernel_.Bind(DNNL_ARG_SRC, x);
  backward_kernel_.Bind(DNNL_ARG_DIFF_WEIGHTS, kernel_gradient);
  backward_kernel_.Bind(DNNL_ARG_DIFF_DST, y_gradient);
  backward_kernel_.Run();
}

void InnerProduct::InputGradient(const float* kernel, const float* y_gradient, float* x_gradient) {
  backward_input_.Bind(DNNL_ARG_DIFF_SRC, x_gradient);
  backward_input_.Bind(DNNL_ARG_WEIGHTS, kernel);
  backward_input_.Bind(DNNL_ARG_DIFF_DST, y_gradient);
  backward_input_.Run();
}

}  // namespace lockstep::worker::cpu
