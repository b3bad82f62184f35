// A layer that the project does not have, added by this file alone: y = factor * weight * x,
// element by element. Variable: weight, of the input's shape. Parameter: the number `factor`.
#include "absl/strings/str_cat.h"
#include "common/model/custom_layers.h"
#include "worker/ops/cpu/cpu_op.h"
#include "worker/ops/cpu/ops.h"

namespace lockstep::extend {
namespace {

constexpr char kType[] = "scale";

double FactorOf(const CustomKind& kind) {
  for (const CustomParameter& parameter : kind.parameters()) {
    if (parameter.name() == "factor") return parameter.number();
  }
  return 0;
}

absl::StatusOr<InferredLayer> InferScale(const CustomKind& kind, absl::Span<const Shape> inputs) {
  if (inputs.size() != 1) {
    return absl::InvalidArgumentError(absl::StrCat("inputs: expected 1, got ", inputs.size()));
  }
  if (FactorOf(kind) == 0) {
    return absl::InvalidArgumentError("parameters: expected a number \"factor\" that is not 0");
  }
  Initializer ones;
  ones.mutable_constant()->set_value(1);
  return InferredLayer{inputs[0], {{"weight", inputs[0], ones}}};
}

class ScaleOp : public worker::cpu::CpuOp {
 public:
  explicit ScaleOp(const worker::CustomOptions& options)
      : factor_(static_cast<float>(FactorOf(options.kind))), batch_(options.batch) {}

 private:
  void RunForward(const ForwardArgs& args) override {
    const std::span<const float> x = args.inputs[0].as<float>();
    const std::span<const float> weight = args.variables[0].as<float>();
    const std::span<float> y = args.output.as<float>();
    for (size_t i = 0; i < y.size(); ++i) y[i] = factor_ * weight[i % weight.size()] * x[i];
  }

  void RunBackward(const BackwardArgs& args) override {
    const std::span<const float> x = args.inputs[0].as<float>();
    const std::span<const float> weight = args.variables[0].as<float>();
    const std::span<const float> gradient = TensorView(args.output_gradient).as<float>();
    const std::span<float> of_weight = args.variable_gradients[0].as<float>();
    for (size_t k = 0; k < of_weight.size(); ++k) {
      of_weight[k] = 0;
      for (int64_t example = 0; example < batch_; ++example) {
        const size_t i = example * of_weight.size() + k;
        of_weight[k] += factor_ * x[i] * gradient[i];
      }
    }
    if (args.input_gradients[0].data == nullptr) return;
    const std::span<float> of_x = args.input_gradients[0].as<float>();
    for (size_t i = 0; i < of_x.size(); ++i) {
      of_x[i] = factor_ * weight[i % weight.size()] * gradient[i];
    }
  }

  const float factor_;
  const int64_t batch_;
};

worker::OpTable::MadeOr<worker::Op> MakeScale(worker::OpContext*,
                                              const worker::CustomOptions& options) {
  return std::make_unique<ScaleOp>(options);
}

const bool kIsAdded = [] {
  AddCustomLayer(kType, &InferScale);
  worker::cpu::MutableOps().AddCustom(kType, &MakeScale);
  return true;
}();

}  // namespace
}  // namespace lockstep::extend
