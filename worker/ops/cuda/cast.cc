#include "worker/ops/cast.h"

#include "common/base/status_macros.h"
#include "worker/ops/cuda/cast.cuh"
#include "worker/ops/cuda/registration.h"

namespace lockstep::worker::cuda {
namespace {

struct CastKernels {
  Kernel<decltype(lockstep_to_bf16)> to_bfloat16;
  Kernel<decltype(lockstep_from_bf16)> from_bfloat16;
};

class CastOp : public Op {
 public:
  CastOp(const CastOptions& options, const CastKernels& kernels)
      : elements_(options.batch * options.elements),
        input_gradient_(options.input_gradient),
        kernels_(kernels) {}

  absl::Status Forward(const ForwardArgs& args, Stream* stream) override {
    Cast(args.inputs[0], args.output, stream);
    return absl::OkStatus();
  }

  absl::Status Backward(const BackwardArgs& args, Stream* stream) override {
    if (input_gradient_) Cast(args.output_gradient, args.input_gradients[0], stream);
    return absl::OkStatus();
  }

 private:
  void Cast(const TensorView& from, const MutableTensorView& to, Stream* stream) const {
    if (to.dtype == DType::kBFloat16) {
      kernels_.to_bfloat16.Launch(stream, elements_, to.as<BFloat16>().data(),
                                  from.as<float>().data(), elements_);
    } else {
      kernels_.from_bfloat16.Launch(stream, elements_, to.as<float>().data(),
                                    from.as<BFloat16>().data(), elements_);
    }
  }

  const int64_t elements_;
  const bool input_gradient_;
  const CastKernels kernels_;
};

OpTable::MadeOr<Op> MakeCast(CudaContext* context, const CastOptions& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto to, LOCKSTEP_FIND_KERNEL(context, lockstep_to_bf16));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto from, LOCKSTEP_FIND_KERNEL(context, lockstep_from_bf16));
  return std::make_unique<CastOp>(options, CastKernels{to, from});
}

const Registration<&MakeCast, &MakeCast> kCast;

}  // namespace
}  // namespace lockstep::worker::cuda
