#include "worker/ops/noise.h"

#include "common/base/philox_key.h"
#include "common/base/status_macros.h"
#include "worker/ops/cuda/noise.cuh"
#include "worker/ops/cuda/registration.h"
#include "worker/ops/noise_element.h"

namespace lockstep::worker::cuda {
namespace {

class NoiseOp : public Op {
 public:
  NoiseOp(const NoiseOptions& options, const Kernel<decltype(lockstep_noise)>& noise)
      : name_(options.name), elements_(options.batch * options.elements), noise_(noise) {}

  absl::Status Forward(const ForwardArgs& args, Stream* stream) override {
    noise_.Launch(stream, (elements_ + kNoisePerBlock - 1) / kNoisePerBlock,
                  args.output.as<float>().data(), args.random_key, PurposeHash(name_), elements_);
    return absl::OkStatus();
  }

  absl::Status Backward(const BackwardArgs&, Stream*) override { return absl::OkStatus(); }

 private:
  const std::string name_;
  const int64_t elements_;
  const Kernel<decltype(lockstep_noise)> noise_;
};

OpTable::MadeOr<Op> MakeNoise(CudaContext* context, const NoiseOptions& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto noise, LOCKSTEP_FIND_KERNEL(context, lockstep_noise));
  return std::make_unique<NoiseOp>(options, noise);
}

const Registration<&MakeNoise> kNoise;

}  // namespace
}  // namespace lockstep::worker::cuda
