#include "worker/ops/activation.h"

#include "common/base/status_macros.h"
#include "worker/ops/cuda/activation.cuh"
#include "worker/ops/cuda/registration.h"

namespace lockstep::worker::cuda {
namespace {

// All activations have the same parameters.
using ActivationKernel = Kernel<decltype(lockstep_relu)>;
using ActivationGradientKernel = Kernel<decltype(lockstep_relu_gradient)>;

class ActivationOp : public Op {
 public:
  ActivationOp(const ActivationOptions& options, const ActivationKernel& forward,
               const ActivationGradientKernel& backward)
      : elements_(options.batch * options.elements),
        input_gradient_(options.input_gradient),
        forward_(forward),
        backward_(backward) {}

  absl::Status Forward(const ForwardArgs& args, Stream* stream) override {
    forward_.Launch(stream, elements_, args.output.as<float>().data(),
                    args.inputs[0].as<float>().data(), elements_);
    return absl::OkStatus();
  }

  absl::Status Backward(const BackwardArgs& args, Stream* stream) override {
    if (!input_gradient_) return absl::OkStatus();
    backward_.Launch(stream, elements_, args.input_gradients[0].as<float>().data(),
                     args.output.as<float>().data(), args.output_gradient.as<float>().data(),
                     elements_);
    return absl::OkStatus();
  }

 private:
  const int64_t elements_;
  const bool input_gradient_;
  const ActivationKernel forward_;
  const ActivationGradientKernel backward_;
};

struct Names {
  const char* forward;
  const char* backward;
};

Names NamesOf(ActivationKind kind) {
  switch (kind) {
    case ActivationKind::kRelu:
      return {"lockstep_relu", "lockstep_relu_gradient"};
    case ActivationKind::kTanh:
      return {"lockstep_tanh", "lockstep_tanh_gradient"};
    case ActivationKind::kSigmoid:
      break;
  }
  return {"lockstep_sigmoid", "lockstep_sigmoid_gradient"};
}

OpTable::MadeOr<Op> MakeActivation(CudaContext* context, const ActivationOptions& options) {
  const Names names = NamesOf(options.kind);
  LOCKSTEP_ASSIGN_OR_RETURN(const auto forward,
                            context->Find<decltype(lockstep_relu)>(names.forward));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto backward,
                            context->Find<decltype(lockstep_relu_gradient)>(names.backward));
  return std::make_unique<ActivationOp>(options, forward, backward);
}

const Registration<&MakeActivation> kActivation;

}  // namespace
}  // namespace lockstep::worker::cuda
