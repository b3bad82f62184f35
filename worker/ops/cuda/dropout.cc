#include "worker/ops/dropout.h"

#include "common/base/philox_key.h"
#include "common/base/status_macros.h"
#include "worker/ops/cuda/dropout.cuh"
#include "worker/ops/cuda/registration.h"
#include "worker/ops/dropout_element.h"

namespace lockstep::worker::cuda {
namespace {

template <typename T>
struct DropoutKernels {
  Kernel<LOCKSTEP_FUNCTION_OF(T, lockstep_dropout)> forward;
  Kernel<LOCKSTEP_FUNCTION_OF(T, lockstep_dropout_gradient)> backward;
};

template <typename T>
class DropoutOp : public Op {
 public:
  // `kept`: a byte per element; null where the op is for inference.
  DropoutOp(const DropoutOptions& options, const DropoutKernels<T>& kernels, DeviceBuffer kept)
      : options_(options),
        elements_(options.batch * options.elements),
        scale_(1 / (1 - options.rate)),
        kernels_(kernels),
        kept_(std::move(kept)) {}

  absl::Status Forward(const ForwardArgs& args, Stream* stream) override {
    const std::span<const T> x = args.inputs[0].as<T>();
    T* const y = args.output.as<T>().data();
    if (args.mode == Mode::kInference) {
      static_cast<CudaStream*>(stream)->CopyOnDevice(y, x.data(), x.size_bytes());
      return absl::OkStatus();
    }
    kernels_.forward.Launch(stream, (elements_ + kDropoutPerBlock - 1) / kDropoutPerBlock, y,
                            kept(), x.data(), args.random_key, PurposeHash(options_.name),
                            options_.rate, scale_, elements_);
    return absl::OkStatus();
  }

  absl::Status Backward(const BackwardArgs& args, Stream* stream) override {
    if (!options_.input_gradient) return absl::OkStatus();
    kernels_.backward.Launch(stream, elements_, args.input_gradients[0].as<T>().data(), kept(),
                             args.output_gradient.as<T>().data(), scale_, elements_);
    return absl::OkStatus();
  }

 private:
  uint8_t* kept() const { return reinterpret_cast<uint8_t*>(kept_.get()); }

  const DropoutOptions options_;
  const int64_t elements_;
  const float scale_;
  const DropoutKernels<T> kernels_;
  const DeviceBuffer kept_;
};

template <typename T>
OpTable::MadeOr<Op> MakeDropout(CudaContext* context, const DropoutOptions& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto forward,
                            LOCKSTEP_FIND_KERNEL_OF(context, T, lockstep_dropout));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto backward,
                            LOCKSTEP_FIND_KERNEL_OF(context, T, lockstep_dropout_gradient));
  DeviceBuffer kept;
  if (options.training) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        kept, context->device()->Allocate(static_cast<size_t>(options.batch * options.elements)));
  }
  return std::make_unique<DropoutOp<T>>(options, DropoutKernels<T>{forward, backward},
                                        std::move(kept));
}

const Registration<&MakeDropout<float>, &MakeDropout<BFloat16>> kDropout;

}  // namespace
}  // namespace lockstep::worker::cuda
