#include "worker/ops/cpu/sigmoid_cross_entropy.h"

#include "worker/ops/loss_element.h"

namespace lockstep::worker::cpu {
void SigmoidCrossEntropy::RunTrain(const Args& args) {
  const double elements = static_cast<double>(batch_ * outputs_);
  if (args.gradient.data != nullptr) {
    const std::span<const float> logits = args.outputs.as<float>();
    const std::span<float> gradient = args.gradient.as<float>();
    for (int64_t i = 0; i < batch_ * outputs_; ++i) {
      gradient[i] =
          SigmoidCrossEntropyGradient(logits[i], static_cast<double>(TargetOf(args, i)), elements);
    }
  }
  args.result.as<float>()[0] = static_cast<float>(SumOf(args) / elements);
}

void SigmoidCrossEntropy::RunEvaluate(const Args& args) {
  args.result.as<double>()[kLossSum] = SumOf(args) / static_cast<double>(outputs_);
  args.result.as<double>()[kCorrect] = 0;
}

void SigmoidCrossEntropy::RunPredict(const Args& args) {
  const std::span<const float> logits = args.outputs.as<float>();
  const std::span<float> probabilities = args.result.as<float>();
  for (int64_t i = 0; i < batch_ * outputs_; ++i) {
    probabilities[i] = static_cast<float>(SigmoidOf(logits[i]));
  }
}

double SigmoidCrossEntropy::SumOf(const Args& args) const {
  const std::span<const float> logits = args.outputs.as<float>();
  double sum = 0;
  for (int64_t i = 0; i < batch_ * outputs_; ++i) {
    sum += SigmoidCrossEntropyTerm(logits[i], static_cast<double>(TargetOf(args, i)));
  }
  return sum;
}

float SigmoidCrossEntropy::TargetOf(const Args& args, int64_t element) const {
  return target_.has_value() ? *target_ : args.labels.as<float>()[element];
}

}  // namespace lockstep::worker::cpu
