#include "common/optimizer/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "common/base/check.h"

namespace lockstep {
namespace {

float Rate(float base, const ConstantSchedule&, GlobalStep) { return base; }

float Rate(float base, const ExponentialSchedule& schedule, GlobalStep step) {
  LOCKSTEP_CHECK(schedule.decay_steps > 0);
  float exponent = static_cast<float>(step.value()) / static_cast<float>(schedule.decay_steps);
  if (schedule.staircase) exponent = std::floor(exponent);
  return base * std::pow(schedule.decay_rate, exponent);
}

float Rate(float, const PiecewiseSchedule& schedule, GlobalStep step) {
  LOCKSTEP_CHECK(schedule.values.size() == schedule.boundaries.size() + 1);
  // The first boundary that is not below the step: a boundary belongs to the piece it ends.
  const auto piece =
      std::lower_bound(schedule.boundaries.begin(), schedule.boundaries.end(), step.value());
  return schedule.values[piece - schedule.boundaries.begin()];
}

float Rate(float base, const CosineSchedule& schedule, GlobalStep step) {
  LOCKSTEP_CHECK(schedule.decay_steps > 0);
  const float done = static_cast<float>(std::min(step.value(), schedule.decay_steps)) /
                     static_cast<float>(schedule.decay_steps);
  const float cosine = 0.5f * (1.0f + std::cos(std::numbers::pi_v<float> * done));
  return base * ((1.0f - schedule.alpha) * cosine + schedule.alpha);
}

}  // namespace

float LearningRateAt(const LearningRateSchedule& schedule, GlobalStep step) {
  return std::visit([&](const auto& kind) { return Rate(schedule.base, kind, step); },
                    schedule.kind);
}

}  // namespace lockstep
