#include "worker/ops/dropout.h"

#include "common/base/philox_key.h"
#include "common/base/status_macros.h"
#include "worker/ops/cuda/dropout.cuh"
#include "worker/ops/cuda/registration.h"
#include "worker/ops/dropout_element.h"

namespace lockstep::worker::cuda {
namespace {

struct DropoutKernels {
  Kernel<decltype(lockstep_dropout)> forward;
  Kernel<decltype(lockstep_dropout_gradient)> backward;
};

class DropoutOp : public Op {
 public:
  // `kept`: a byte per element; null where the op is for inference.
  DropoutOp(const DropoutOptions& options, const DropoutKernels& kernels, DeviceBuffer kept)
      : options_(options),
        elements_(options.batch * options.elements),
        scale_(1 / (1 - options.rate)),
        kernels_(kernels),
        kept_(std::move(kept)) {}

  absl::Status Forward(const ForwardArgs& args, Stream* stream) override {
    const std::span<const float> x = args.inputs[0].as<float>();
    float* const y = args.output.as<float>().data();
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
    kernels_.backward.Launch(stream, elements_, args.input_gradients[0].as<float>().data(), kept(),
                             args.output_gradient.as<float>().data(), scale_, elements_);
    return absl::OkStatus();
  }

 private:
  uint8_t* kept() const { return reinterpret_cast<uint8_t*>(kept_.get()); }

  const DropoutOptions options_;
  const int64_t elements_;
  const float scale_;
  const DropoutKernels kernels_;
  const DeviceBuffer kept_;
};

OpTable::MadeOr<Op> MakeDropout(CudaContext* context, const DropoutOptions& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto forward, LOCKSTEP_FIND_KERNEL(context, lockstep_dropout));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto backward,
                            LOCKSTEP_FIND_KERNEL(context, lockstep_dropout_gradient));
  DeviceBuffer kept;
  if (options.training) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        kept, context->device()->Allocate(static_cast<size_t>(options.batch * options.elements)));
  }
  return std::make_unique<DropoutOp>(options, DropoutKernels{forward, backward}, std::move(kept));
}

const Registration<&MakeDropout> kDropout;

}  // namespace
}  // namespace lockstep::worker::cuda
