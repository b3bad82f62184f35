#include "worker/ops/dense.h"

#include "worker/ops/cpu/bias_gradient.h"
#include "worker/ops/cpu/cpu_op.h"
#include "worker/ops/cpu/inner_product.h"
#include "worker/ops/cpu/registration.h"
#include "worker/ops/cpu/relu.h"

namespace lockstep::worker::cpu {
namespace {

class DenseOp : public CpuOp {
  enum Variable { kKernel, kBias };

 public:
  DenseOp(OneDnn* onednn, const DenseOptions& options)
      : options_(options),
        product_(onednn, {options.batch, options.inputs, options.units, options.bias,
                          options.training, options.variable_gradients, options.input_gradient}),
        bias_gradient_(options.batch, options.units) {}

  void RunForward(const ForwardArgs& args) override {
    product_.Forward(args.inputs[0].as<float>().data(), args.variables[kKernel].as<float>().data(),
                     options_.bias ? args.variables[kBias].as<float>().data() : nullptr,
                     args.output.as<float>().data());
    if (options_.relu) ApplyRelu(args.output.as<float>());
  }

  void RunBackward(const BackwardArgs& args) override {
    float* const gradient = args.output_gradient.as<float>().data();
    bias_gradient_.Run(options_.relu ? args.output.as<float>().data() : nullptr, gradient,
                       options_.bias && options_.variable_gradients
                           ? args.variable_gradients[kBias].as<float>().data()
                           : nullptr);

    if (options_.variable_gradients) {
      product_.KernelGradient(args.inputs[0].as<float>().data(), gradient,
                              args.variable_gradients[kKernel].as<float>().data());
    }
    if (!options_.input_gradient) return;
    product_.InputGradient(args.variables[kKernel].as<float>().data(), gradient,
                           static_cast<float*>(args.input_gradients[0].data));
  }

 private:
  const DenseOptions options_;
  InnerProduct product_;
  BiasGradient bias_gradient_;
};

std::unique_ptr<Op> MakeDense(OneDnn* onednn, const DenseOptions& options) {
  return std::make_unique<DenseOp>(onednn, options);
}

const Registration<&MakeDense> kDense;

}  // namespace
}  // namespace lockstep::worker::cpu
