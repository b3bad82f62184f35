#include <algorithm>
#include <cmath>
#include <cstring>

#include "common/base/check.h"
#include "worker/ops/cpu/ops.h"

namespace lockstep::worker::cpu {
namespace {

class SoftmaxCrossEntropy : public Loss {
 public:
  explicit SoftmaxCrossEntropy(const LossOptions& options)
      : batch_(options.batch), classes_(options.outputs) {}

  double Train(TensorView outputs, TensorView labels, MutableTensorView gradient) override {
    const float* const scores = outputs.as<float>().data();
    double loss = 0;
    for (int64_t row = 0; row < batch_; ++row) {
      const float* const z = scores + row * classes_;
      const int64_t label = LabelOf(labels, row);
      const Exponentials sums = Sum(z);
      loss += sums.LossOf(z[label]);
      if (gradient.data == nullptr) continue;
      float* const g = static_cast<float*>(gradient.data) + row * classes_;
      const float scale = static_cast<float>(1 / (sums.sum * static_cast<double>(batch_)));
      for (int64_t c = 0; c < classes_; ++c) g[c] = std::exp(z[c] - sums.largest) * scale;
      g[label] -= 1 / static_cast<float>(batch_);
    }
    return loss / static_cast<double>(batch_);
  }

  Sums Evaluate(TensorView outputs, TensorView labels) override {
    const float* const scores = outputs.as<float>().data();
    Sums sums;
    for (int64_t row = 0; row < batch_; ++row) {
      const float* const z = scores + row * classes_;
      const int64_t label = LabelOf(labels, row);
      sums.loss += Sum(z).LossOf(z[label]);
      sums.correct += std::max_element(z, z + classes_) == z + label;
    }
    return sums;
  }

  void Predict(TensorView outputs, MutableTensorView predictions) override {
    const float* const scores = outputs.as<float>().data();
    float* const probabilities = predictions.as<float>().data();
    for (int64_t row = 0; row < batch_; ++row) {
      const float* const z = scores + row * classes_;
      const Exponentials sums = Sum(z);
      for (int64_t c = 0; c < classes_; ++c) {
        probabilities[row * classes_ + c] =
            static_cast<float>(std::exp(z[c] - sums.largest) / sums.sum);
      }
    }
  }

 private:
  // exp(score - largest) summed: the largest is taken out so that nothing overflows.
  struct Exponentials {
    float largest;
    double sum;
    double LossOf(float score) const {
      return std::log(sum) - (static_cast<double>(score) - static_cast<double>(largest));
    }
  };

  Exponentials Sum(const float* scores) const {
    Exponentials sums{*std::max_element(scores, scores + classes_), 0};
    for (int64_t c = 0; c < classes_; ++c) sums.sum += std::exp(scores[c] - sums.largest);
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

class L2 : public Loss {
 public:
  explicit L2(const LossOptions& options)
      : batch_(options.batch), elements_(options.batch * options.outputs) {}

  double Train(TensorView outputs, TensorView labels, MutableTensorView gradient) override {
    if (gradient.data != nullptr) {
      const std::span<const float> y = outputs.as<float>();
      const std::span<const float> target = labels.as<float>();
      const std::span<float> g = gradient.as<float>();
      for (int64_t i = 0; i < elements_; ++i) {
        g[i] = (y[i] - target[i]) / static_cast<float>(batch_);
      }
    }
    return Evaluate(outputs, labels).loss / static_cast<double>(batch_);
  }

  Sums Evaluate(TensorView outputs, TensorView labels) override {
    const std::span<const float> y = outputs.as<float>();
    const std::span<const float> target = labels.as<float>();
    Sums sums;
    for (int64_t i = 0; i < elements_; ++i) {
      const double difference = static_cast<double>(y[i]) - static_cast<double>(target[i]);
      sums.loss += difference * difference / 2;
    }
    return sums;
  }

  void Predict(TensorView outputs, MutableTensorView predictions) override {
    std::memcpy(predictions.data, outputs.data, elements_ * sizeof(float));
  }

 private:
  const int64_t batch_;
  const int64_t elements_;
};

}  // namespace

std::unique_ptr<Loss> MakeLoss(const LossOptions& options) {
  if (options.kind == LossKind::kL2) return std::make_unique<L2>(options);
  return std::make_unique<SoftmaxCrossEntropy>(options);
}

}  // namespace lockstep::worker::cpu
