#include "worker/ops/activation.h"

#include "worker/ops/cpu/cpu_op.h"
#include "worker/ops/cpu/registration.h"
#include "worker/ops/cpu/relu.h"

namespace lockstep::worker::cpu {
namespace {

// The derivative of each follows from the result, so the input need not be kept.
struct Algorithms {
  dnnl::algorithm forward;
  dnnl::algorithm backward;
};

Algorithms AlgorithmsOf(ActivationKind kind) {
  using dnnl::algorithm;
  switch (kind) {
    case ActivationKind::kRelu:
      return {algorithm::eltwise_relu, algorithm::eltwise_relu_use_dst_for_bwd};
    case ActivationKind::kTanh:
      return {algorithm::eltwise_tanh, algorithm::eltwise_tanh_use_dst_for_bwd};
    case ActivationKind::kSigmoid:
      break;
  }
  return {algorithm::eltwise_logistic, algorithm::eltwise_logistic_use_dst_for_bwd};
}

class ActivationOp : public CpuOp {
 public:
  ActivationOp(OneDnn* onednn, const ActivationOptions& options) : options_(options) {
    using Forward = dnnl::eltwise_forward;
    using Backward = dnnl::eltwise_backward;
    const Desc shape = FloatDesc({options.batch * options.elements}, Tag::x);
    const Algorithms algorithms = AlgorithmsOf(options.kind);
    const auto kind =
        options.training ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
    const Forward::primitive_desc forward(
        {kind, options.training ? algorithms.backward : algorithms.forward, shape, 0, 0},
        Primitive::Attributes(), onednn->engine());
    if (options.kind != ActivationKind::kRelu) {
      forward_ = Primitive(onednn, forward, {{DNNL_ARG_SRC, shape}, {DNNL_ARG_DST, shape}});
    }
    if (!options.training || !options.input_gradient) return;
    const Backward::primitive_desc backward({algorithms.backward, shape, shape, 0, 0},
                                            Primitive::Attributes(), onednn->engine(), forward);
    backward_ =
        Primitive(onednn, backward,
                  {{DNNL_ARG_DST, shape}, {DNNL_ARG_DIFF_DST, shape}, {DNNL_ARG_DIFF_SRC, shape}});
  }

  void RunForward(const ForwardArgs& args) override {
    if (options_.kind == ActivationKind::kRelu) {
      return Relu(args.inputs[0].as<float>(), args.output.as<float>());
    }
    forward_.Bind(DNNL_ARG_SRC, args.inputs[0].data);
    forward_.Bind(DNNL_ARG_DST, args.output.data);
    forward_.Run();
  }

  void RunBackward(const BackwardArgs& args) override {
    if (!options_.input_gradient) return;
    backward_.Bind(DNNL_ARG_DST, args.output.data);
    backward_.Bind(DNNL_ARG_DIFF_DST, args.output_gradient.data);
    backward_.Bind(DNNL_ARG_DIFF_SRC, args.input_gradients[0].data);
    backward_.Run();
  }

 private:
  const ActivationOptions options_;
  Primitive forward_;
  Primitive backward_;
};

std::unique_ptr<Op> MakeActivation(OneDnn* onednn, const ActivationOptions& options) {
  return std::make_unique<ActivationOp>(onednn, options);
}

const Registration<&MakeActivation> kActivation;

}  // namespace
}  // namespace lockstep::worker::cpu
