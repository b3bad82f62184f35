#include "worker/ops/cuda/moving_average.cuh"

#include "common/base/check.h"
#include "common/base/limits.h"
#include "common/base/status_macros.h"
#include "worker/ops/cuda/registration.h"
#include "worker/ops/gradient_op.h"

namespace lockstep::worker::cuda {
namespace {

static_assert(kLockstepMostUpdates >= limits::kMaxTowers);

class MovingAverageOp : public GradientOp {
 public:
  MovingAverageOp(const MovingAverageOptions& options,
                  const Kernel<decltype(lockstep_moving_average)>& kernel)
      : momentum_(options.momentum), kernel_(kernel) {}

  absl::Status Run(const Args& args, Stream* stream) override {
    const std::span<const TensorView> updates = args.inputs.subspan(1);
    LOCKSTEP_CHECK(updates.size() <= kLockstepMostUpdates);
    LockstepUpdates pointers = {.at = {}, .count = static_cast<int32_t>(updates.size())};
    for (size_t i = 0; i < updates.size(); ++i) pointers.at[i] = updates[i].as<float>().data();
    const int64_t elements = args.outputs[0].num_elements();
    kernel_.Launch(stream, elements, args.outputs[0].as<float>().data(),
                   args.inputs[0].as<float>().data(), pointers, momentum_, elements);
    return absl::OkStatus();
  }

 private:
  const float momentum_;
  const Kernel<decltype(lockstep_moving_average)> kernel_;
};

OpTable::MadeOr<GradientOp> MakeMovingAverage(CudaContext* context,
                                              const MovingAverageOptions& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto kernel,
                            LOCKSTEP_FIND_KERNEL(context, lockstep_moving_average));
  return std::make_unique<MovingAverageOp>(options, kernel);
}

const Registration<&MakeMovingAverage> kMovingAverage;

}  // namespace
}  // namespace lockstep::worker::cuda
