// A strategy of a project of its own: one replica that keeps the variables and applies its
// gradients by itself, without a parameter server.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/base/callback.h"
#include "common/model/graph.h"
#include "worker/strategy/update_strategy.h"

namespace lockstep::extend {

struct LocalStrategyOptions {
  uint64_t seed = 0;
  float learning_rate = 0;
  int64_t steps = 0;
};

// Gradient descent over models without tables. Each callback comes before its call returns.
class LocalStrategy final : public worker::UpdateStrategy {
 public:
  // The graph outlives the strategy.
  LocalStrategy(const ModelGraph& graph, const LocalStrategyOptions& options);

  void BeginStep(const worker::StepInput& input, Callback<worker::StepValues> done) override;
  void AddGradients(std::span<const int> variables) override;
  void EndStep(const std::optional<worker::StepInput>& predicted,
               Callback<worker::StepOutcome> done) override;
  std::optional<GlobalStep> PredictNext() const override { return step_.next(); }
  std::string DescribeWait() const override { return ""; }
  // Nothing is ever pending, and the training thread is the only one here.
  void Cancel() override {}

  // train/loss of each step.
  const std::vector<float>& losses() const { return losses_; }
  // What PredictNext was answered with.
  const std::vector<GlobalStep>& predicted() const { return predicted_; }

 private:
  const ModelGraph& graph_;
  const LocalStrategyOptions options_;
  GlobalStep step_;
  std::vector<Tensor> values_;
  std::vector<TensorView> views_;
  std::vector<Tensor> gradients_;
  std::vector<MutableTensorView> gradient_views_;
  uint64_t num_final_ = 0;
  std::vector<float> losses_;
  std::vector<GlobalStep> predicted_;
};

}  // namespace lockstep::extend
