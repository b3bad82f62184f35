#include "worker/ops/loss.h"

#include <algorithm>
#include <cstring>

#include "common/base/check.h"
#include "worker/ops/cpu/cpu_op.h"
#include "worker/ops/cpu/registration.h"
#include "worker/ops/cpu/sigmoid_cross_entropy.h"
#include "worker/ops/loss_element.h"

namespace lockstep::worker::cpu {
namespace {

class SoftmaxCrossEntropy : public CpuLoss {
 public:
  explicit SoftmaxCrossEntropy(const LossOptions& options)
      : batch_(options.batch), classes_(options.outputs) {}

  void RunTrain(const Args& args) override {
    const float* const scores = args.outputs.as<float>().data();
    double loss = 0;
    for (int64_t row = 0; row < batch_; ++row) {
      const float* const z = scores + row * classes_;
      const int64_t label = LabelOf(args.labels, row);
      const Exponentials sums = Sum(z);
      loss += sums.LossOf(z[label]);
      if (args.gradient.data == nullptr) continue;
      float* const g = static_cast<float*>(args.gradient.data) + row * classes_;
      const float scale = static_cast<float>(1 / (sums.sum * static_cast<double>(batch_)));
      for (int64_t c = 0; c < classes_; ++c) g[c] = SoftmaxTerm(z[c], sums.largest) * scale;
      g[label] -= 1 / static_cast<float>(batch_);
    }
    args.result.as<float>()[0] = static_cast<float>(loss / static_cast<double>(batch_));
  }

  void RunEvaluate(const Args& args) override {
    const float* const scores = args.outputs.as<float>().data();
    double loss = 0;
    int64_t correct = 0;
    for (int64_t row = 0; row < batch_; ++row) {
      const float* const z = scores + row * classes_;
      const int64_t label = LabelOf(args.labels, row);
      loss += Sum(z).LossOf(z[label]);
      correct += std::max_element(z, z + classes_) == z + label;
    }
    args.result.as<double>()[kLossSum] = loss;
    args.result.as<double>()[kCorrect] = static_cast<double>(correct);
  }

  void RunPredict(const Args& args) override {
    const float* const scores = args.outputs.as<float>().data();
    float* const probabilities = args.result.as<float>().data();
    for (int64_t row = 0; row < batch_; ++row) {
      const float* const z = scores + row * classes_;
      const Exponentials sums = Sum(z);
      for (int64_t c = 0; c < classes_; ++c) {
        probabilities[row * classes_ + c] =
            static_cast<float>(SoftmaxTerm(z[c], sums.largest) / sums.sum);
      }
    }
  }

 private:
  struct Exponentials {
    float largest;
    double sum;
    double LossOf(float score) const { return SoftmaxLoss(sum, largest, score); }
  };

  Exponentials Sum(const float* scores) const {
    Exponentials sums{*std::max_element(scores, scores + classes_), 0};
    for (int64_t c = 0; c < classes_; ++c) sums.sum += SoftmaxTerm(scores[c], sums.largest);
    return sums;
  }

  int64_t LabelOf(TensorView labels, int64_t row) const {
    const int32_t label = labels.as<int32_t>()[row];
    LOCKSTEP_CHECK(label >= 0 && label < classes_);
    return label;
  }

  const int64_t batch_;
  const int64_t classes_;
};

class L2 : public CpuLoss {
 public:
  explicit L2(const LossOptions& options)
      : batch_(options.batch), elements_(options.batch * options.outputs) {}

  void RunTrain(const Args& args) override {
    if (args.gradient.data != nullptr) {
      const std::span<const float> y = args.outputs.as<float>();
      const std::span<const float> target = args.labels.as<float>();
      const std::span<float> g = args.gradient.as<float>();
      for (int64_t i = 0; i < elements_; ++i) {
        g[i] = L2Gradient(y[i], target[i], static_cast<float>(batch_));
      }
    }
    args.result.as<float>()[0] = static_cast<float>(SumOf(args) / static_cast<double>(batch_));
  }

  void RunEvaluate(const Args& args) override {
    args.result.as<double>()[kLossSum] = SumOf(args);
    args.result.as<double>()[kCorrect] = 0;
  }

  void RunPredict(const Args& args) override {
    std::memcpy(args.result.data, args.outputs.data, elements_ * sizeof(float));
  }

 private:
  double SumOf(const Args& args) const {
    const std::span<const float> y = args.outputs.as<float>();
    const std::span<const float> target = args.labels.as<float>();
    double loss = 0;
    for (int64_t i = 0; i < elements_; ++i) {
      loss += L2Term(y[i], target[i]);
    }
    return loss;
  }

  const int64_t batch_;
  const int64_t elements_;
};

std::unique_ptr<Loss> MakeLoss(OneDnn*, const LossOptions& options) {
  switch (options.kind) {
    case LossKind::kSoftmaxCrossEntropy:
      return std::make_unique<SoftmaxCrossEntropy>(options);
    case LossKind::kSigmoidCrossEntropy:
      return std::make_unique<SigmoidCrossEntropy>(options);
    case LossKind::kL2:
      break;
  }
  return std::make_unique<L2>(options);
}

const Registration<&MakeLoss> kLoss;

}  // namespace
}  // namespace lockstep::worker::cpu
