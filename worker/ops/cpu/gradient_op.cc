// Loops that the towers' gradients pass through once; one thread is as fast as memory here.
#include "worker/ops/gradient_op.h"

#include "common/optimizer/clipping.h"
#include "worker/ops/cpu/cpu_op.h"
#include "worker/ops/cpu/registration.h"
#include "worker/ops/gradient_element.h"

namespace lockstep::worker::cpu {
namespace {

class MeanOp : public CpuGradientOp {
 public:
  explicit MeanOp(const MeanOptions& options) : count_(options.count) {}

 private:
  void RunNow(const Args& args) override {
    const size_t count = count_ == 0 ? args.inputs.size() : static_cast<size_t>(count_);
    const float scale = 1.0f / static_cast<float>(count);
    const std::span<float> to = args.outputs[0].as<float>();
    std::span<const float> sum = args.inputs[0].as<float>();
    for (size_t tower = 1; tower < args.inputs.size(); ++tower) {
      const std::span<const float> term = args.inputs[tower].as<float>();
      for (size_t i = 0; i < to.size(); ++i) to[i] = sum[i] + term[i];
      sum = to;
    }
    for (size_t i = 0; i < to.size(); ++i) to[i] = sum[i] * scale;
  }

  const int count_;
};

class MovingAverageOp : public CpuGradientOp {
 public:
  explicit MovingAverageOp(const MovingAverageOptions& options) : momentum_(options.momentum) {}

 private:
  void RunNow(const Args& args) override {
    const std::span<const float> old = args.inputs[0].as<float>();
    const std::span<float> to = args.outputs[0].as<float>();
    for (size_t i = 0; i < to.size(); ++i) {
      float value = old[i];
      for (const TensorView& update : args.inputs.subspan(1)) {
        value = AfterUpdate(value, update.as<float>()[i], old[i], momentum_);
      }
      to[i] = value;
    }
  }

  const float momentum_;
};

class ClippingOp : public CpuGradientOp {
 public:
  explicit ClippingOp(const ClippingOptions& options) : rule_(options.rule) {}

 private:
  void RunNow(const Args& args) override {
    Clip(rule_, {args.outputs.data(), args.outputs.size()});
  }

  const ClippingRule rule_;
};

std::unique_ptr<GradientOp> MakeMean(OneDnn*, const MeanOptions& options) {
  return std::make_unique<MeanOp>(options);
}

std::unique_ptr<GradientOp> MakeMovingAverage(OneDnn*, const MovingAverageOptions& options) {
  return std::make_unique<MovingAverageOp>(options);
}

std::unique_ptr<GradientOp> MakeClipping(OneDnn*, const ClippingOptions& options) {
  return std::make_unique<ClippingOp>(options);
}

const Registration<&MakeMean> kMean;
const Registration<&MakeMovingAverage> kMovingAverage;
const Registration<&MakeClipping> kClipping;

}  // namespace
}  // namespace lockstep::worker::cpu
