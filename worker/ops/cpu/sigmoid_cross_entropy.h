// Cross-entropy of yes-or-no decisions, as TensorFlow computes it from logits.
#pragma once

#include <cstdint>
#include <optional>

#include "worker/ops/cpu/cpu_op.h"

namespace lockstep::worker::cpu {

class SigmoidCrossEntropy : public CpuLoss {
 public:
  explicit SigmoidCrossEntropy(const LossOptions& options)
      : batch_(options.batch), outputs_(options.outputs), target_(options.target) {}

 private:
  void RunTrain(const Args& args) override;
  void RunEvaluate(const Args& args) override;
  void RunPredict(const Args& args) override;

  // Over all logits of the batch.
  double SumOf(const Args& args) const;
  float TargetOf(const Args& args, int64_t element) const;

  const int64_t batch_;
  const int64_t outputs_;
  const std::optional<float> target_;
};

}  // namespace lockstep::worker::cpu
