// Loops that the towers' gradients pass through once; one thread is as fast as memory here.
#include "worker/ops/gradient_op.h"

#include "common/optimizer/clipping.h"
#include "worker/ops/cpu/cpu_op.h"
#include "worker/ops/cpu/registration.h"

namespace lockstep::worker::cpu {
namespace {

class MeanOp : public CpuGradientOp {
 public:
  explicit MeanOp(const MeanOptions& options) : factor_(options.factor) {}

 private:
  void RunNow(const Args& args) override {
    const float scale = 1.0f / static_cast<float>(args.inputs.size());
    const std::span<float> to = args.outputs[0].as<float>();
    std::span<const float> sum = args.inputs[0].as<float>();
    for (size_t tower = 1; tower < args.inputs.size(); ++tower) {
      const std::span<const float> term = args.inputs[tower].as<float>();
      for (size_t i = 0; i < to.size(); ++i) to[i] = sum[i] + term[i];
      sum = to;
    }
    for (float& element : to) element *= scale;
    if (factor_ == 1) return;
    for (float& element : to) element *= static_cast<float>(factor_);
  }

  const int factor_;
};

class ClippingOp : public CpuGradientOp {
 public:
  explicit ClippingOp(const ClippingOptions& options) : options_(options) {}

 private:
  void RunNow(const Args& args) override {
    if (options_.kind == ClippingKind::kGlobalNorm) {
      ClipByGlobalNorm(options_.limit, {args.outputs.data(), args.outputs.size()});
      return;
    }
    for (const MutableTensorView& gradient : args.outputs) {
      if (options_.kind == ClippingKind::kValue) {
        ClipByValue(-options_.limit, options_.limit, gradient);
      } else {
        ClipByNorm(options_.limit, gradient);
      }
    }
  }

  const ClippingOptions options_;
};

std::unique_ptr<GradientOp> MakeMean(OneDnn*, const MeanOptions& options) {
  return std::make_unique<MeanOp>(options);
}

std::unique_ptr<GradientOp> MakeClipping(OneDnn*, const ClippingOptions& options) {
  return std::make_unique<ClippingOp>(options);
}

const Registration<&MakeMean> kMean;
const Registration<&MakeClipping> kClipping;

}  // namespace
}  // namespace lockstep::worker::cpu
