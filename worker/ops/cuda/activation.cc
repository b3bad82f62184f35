#include "worker/ops/activation.h"

#include "common/base/status_macros.h"
#include "worker/ops/cuda/activation.cuh"
#include "worker/ops/cuda/registration.h"

namespace lockstep::worker::cuda {
namespace {

// All activations have the same parameters.
template <typename T>
using ActivationFunction = LOCKSTEP_FUNCTION_OF(T, lockstep_relu);
template <typename T>
using ActivationGradientFunction = LOCKSTEP_FUNCTION_OF(T, lockstep_relu_gradient);

template <typename T>
class ActivationOp : public Op {
 public:
  ActivationOp(const ActivationOptions& options, const Kernel<ActivationFunction<T>>& forward,
               const Kernel<ActivationGradientFunction<T>>& backward)
      : elements_(options.batch * options.elements),
        input_gradient_(options.input_gradient),
        forward_(forward),
        backward_(backward) {}

  absl::Status Forward(const ForwardArgs& args, Stream* stream) override {
    forward_.Launch(stream, elements_, args.output.as<T>().data(), args.inputs[0].as<T>().data(),
                    elements_);
    return absl::OkStatus();
  }

  absl::Status Backward(const BackwardArgs& args, Stream* stream) override {
    if (!input_gradient_) return absl::OkStatus();
    backward_.Launch(stream, elements_, args.input_gradients[0].as<T>().data(),
                     args.output.as<T>().data(), args.output_gradient.as<T>().data(), elements_);
    return absl::OkStatus();
  }

 private:
  const int64_t elements_;
  const bool input_gradient_;
  const Kernel<ActivationFunction<T>> forward_;
  const Kernel<ActivationGradientFunction<T>> backward_;
};

absl::string_view NameOf(ActivationKind kind) {
  switch (kind) {
    case ActivationKind::kRelu:
      return "lockstep_relu";
    case ActivationKind::kTanh:
      return "lockstep_tanh";
    case ActivationKind::kSigmoid:
      break;
  }
  return "lockstep_sigmoid";
}

template <typename T>
OpTable::MadeOr<Op> MakeActivation(CudaContext* context, const ActivationOptions& options) {
  const absl::string_view name = NameOf(options.kind);
  const absl::string_view type = std::is_same_v<T, BFloat16> ? "_bf16" : "";
  LOCKSTEP_ASSIGN_OR_RETURN(const auto forward,
                            context->Find<ActivationFunction<T>>(absl::StrCat(name, type).c_str()));
  LOCKSTEP_ASSIGN_OR_RETURN(
      const auto backward,
      context->Find<ActivationGradientFunction<T>>(absl::StrCat(name, "_gradient", type).c_str()));
  return std::make_unique<ActivationOp<T>>(options, forward, backward);
}

const Registration<&MakeActivation<float>, &MakeActivation<BFloat16>> kActivation;

}  // namespace
}  // namespace lockstep::worker::cuda
