#include "worker/ops/cuda/mean.cuh"

#include "common/base/status_macros.h"
#include "worker/ops/cuda/add.cuh"
#include "worker/ops/cuda/registration.h"
#include "worker/ops/gradient_op.h"

namespace lockstep::worker::cuda {
namespace {

struct MeanKernels {
  Kernel<decltype(lockstep_add)> add;
  Kernel<decltype(lockstep_scale)> scale;
};

class MeanOp : public GradientOp {
 public:
  MeanOp(const MeanOptions& options, const MeanKernels& kernels)
      : count_(options.count), kernels_(kernels) {}

  absl::Status Run(const Args& args, Stream* stream) override {
    const size_t count = count_ == 0 ? args.inputs.size() : static_cast<size_t>(count_);
    const int64_t elements = args.outputs[0].num_elements();
    float* const to = args.outputs[0].as<float>().data();
    const float* sum = args.inputs[0].as<float>().data();
    for (const TensorView& term : args.inputs.subspan(1)) {
      kernels_.add.Launch(stream, elements, to, sum, term.as<float>().data(), elements);
      sum = to;
    }
    kernels_.scale.Launch(stream, elements, to, sum, 1.0f / static_cast<float>(count), elements);
    return absl::OkStatus();
  }

 private:
  const int count_;
  const MeanKernels kernels_;
};

OpTable::MadeOr<GradientOp> MakeMean(CudaContext* context, const MeanOptions& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto add, LOCKSTEP_FIND_KERNEL(context, lockstep_add));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto scale, LOCKSTEP_FIND_KERNEL(context, lockstep_scale));
  return std::make_unique<MeanOp>(options, MeanKernels{add, scale});
}

const Registration<&MakeMean> kMean;

}  // namespace
}  // namespace lockstep::worker::cuda
