#include "common/optimizer/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "common/base/check.h"

namespace lockstep {
namespace {

// TensorFlow's formulas divide by decay_steps, but what it runs does not: its graph optimizer
// multiplies by the reciprocal, rounded to float32, and multiplies constants with each other first.
// At a whole multiple of some decay_steps that is just below, or above, a whole number.
float Reciprocal(int64_t decay_steps) {
  LOCKSTEP_CHECK(decay_steps > 0);
  return 1.0f / static_cast<float>(decay_steps);
}

// step / decay_steps, in that way.
float Quotient(int64_t step, int64_t decay_steps, bool staircase = false) {
  const float quotient = static_cast<float>(step) * Reciprocal(decay_steps);
  return staircase ? std::floor(quotient) : quotient;
}

float Rate(float base, const ConstantSchedule&, GlobalStep) { return base; }

float Rate(float base, const ExponentialSchedule& schedule, GlobalStep step) {
  const float exponent = Quotient(step.value(), schedule.decay_steps, schedule.staircase);
  return base * std::pow(schedule.decay_rate, exponent);
}

float Rate(float base, const NaturalExponentialSchedule& schedule, GlobalStep step) {
  const float exponent = Quotient(step.value(), schedule.decay_steps, schedule.staircase);
  return base * std::pow(std::exp(-schedule.decay_rate), exponent);
}

float Rate(float base, const InverseTimeSchedule& schedule, GlobalStep step) {
  if (schedule.staircase) {
    return base / (1.0f + schedule.decay_rate * Quotient(step.value(), schedule.decay_steps, true));
  }
  const float per_step = schedule.decay_rate * Reciprocal(schedule.decay_steps);
  return base / (1.0f + static_cast<float>(step.value()) * per_step);
}

float Rate(float, const PiecewiseSchedule& schedule, GlobalStep step) {
  LOCKSTEP_CHECK(schedule.values.size() == schedule.boundaries.size() + 1);
  // The first boundary that is not below the step: a boundary belongs to the piece it ends.
  const auto piece =
      std::lower_bound(schedule.boundaries.begin(), schedule.boundaries.end(), step.value());
  return schedule.values[piece - schedule.boundaries.begin()];
}

float Rate(float base, const PolynomialSchedule& schedule, GlobalStep step) {
  float done;
  if (schedule.cycle) {
    const float cycles = std::max(1.0f, std::ceil(Quotient(step.value(), schedule.decay_steps)));
    done = static_cast<float>(step.value()) / (static_cast<float>(schedule.decay_steps) * cycles);
  } else {
    done = Quotient(std::min(step.value(), schedule.decay_steps), schedule.decay_steps);
  }
  return (base - schedule.end) * std::pow(std::max(0.0f, 1.0f - done), schedule.power) +
         schedule.end;
}

float Rate(float base, const CosineSchedule& schedule, GlobalStep step) {
  const float per_step = std::numbers::pi_v<float> * Reciprocal(schedule.decay_steps);
  const float done = static_cast<float>(std::min(step.value(), schedule.decay_steps));
  const float cosine = 0.5f * (1.0f + std::cos(done * per_step));
  return base * ((1.0f - schedule.alpha) * cosine + schedule.alpha);
}

float WarmRateAt(const LearningRateSchedule& schedule, GlobalStep step) {
  return std::visit([&](const auto& kind) { return Rate(schedule.base, kind, step); },
                    schedule.kind);
}

}  // namespace

float LearningRateAt(const LearningRateSchedule& schedule, GlobalStep step) {
  const WarmUp& warm_up = schedule.warm_up;
  if (warm_up.steps == 0 || step.value() >= warm_up.steps) return WarmRateAt(schedule, step);
  const float full = WarmRateAt(schedule, GlobalStep(warm_up.steps));
  const float share = static_cast<float>(step.value() + 1) / static_cast<float>(warm_up.steps);
  return warm_up.start + (full - warm_up.start) * share;
}

}  // namespace lockstep
