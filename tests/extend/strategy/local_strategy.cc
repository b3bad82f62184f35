#include "tests/extend/strategy/local_strategy.h"

#include <algorithm>
#include <utility>

#include "common/model/initial_value.h"

namespace lockstep::extend {

using worker::StepInput;
using worker::StepOutcome;
using worker::StepValues;

LocalStrategy::LocalStrategy(const ModelGraph& graph, const LocalStrategyOptions& options)
    : graph_(graph), options_(options) {
  for (const ModelVariable& variable : graph.variables()) {
    values_.emplace_back(variable.dtype, variable.shape);
    FillInitialValue(variable.initializer, options.seed, variable.name, values_.back().view());
    gradients_.emplace_back(variable.dtype, variable.shape);
  }
  for (size_t i = 0; i < values_.size(); ++i) {
    views_.push_back(std::as_const(values_[i]).view());
    gradient_views_.push_back(gradients_[i].view());
  }
}

void LocalStrategy::BeginStep(const StepInput& input, Callback<StepValues> done) {
  step_ = input.step;
  done(StepValues{.version = step_, .values = {views_, input.rows}, .gradients = gradient_views_});
}

void LocalStrategy::AddGradients(std::span<const int> variables) { num_final_ += variables.size(); }

void LocalStrategy::EndStep(const std::optional<StepInput>& predicted, Callback<StepOutcome> done) {
  if (predicted.has_value()) predicted_.push_back(predicted->step);
  for (size_t i = 0; i < values_.size(); ++i) {
    const std::span<float> value = values_[i].view().as<float>();
    const std::span<const float> gradient = gradient_views_[i].as<float>();
    if (!graph_.variables()[i].trainable) {
      std::ranges::copy(gradient, value.begin());
      continue;
    }
    for (size_t k = 0; k < value.size(); ++k) value[k] -= options_.learning_rate * gradient[k];
  }
  losses_.push_back(views_[graph_.loss_variable()].as<float>()[0]);
  const GlobalStep next = step_.next();
  done(StepOutcome{.next = next,
                   .local_step = next,
                   .done = next.value() >= options_.steps,
                   .accepted = std::exchange(num_final_, 0)});
}

}  // namespace lockstep::extend
