#include "common/optimizer_proto/learning_rate.h"

namespace lockstep {
namespace {

// Of the three decays that are made of the same numbers.
template <typename Schedule, typename Decay>
Schedule ToDecay(const Decay& decay) {
  return {.decay_rate = decay.decay_rate(),
          .decay_steps = decay.decay_steps(),
          .staircase = decay.staircase()};
}

}  // namespace

LearningRateSchedule ToSchedule(const LearningRate& rate) {
  LearningRateSchedule schedule{.base = rate.base()};
  if (rate.has_warm_up()) {
    schedule.warm_up = {.steps = rate.warm_up().steps(), .start = rate.warm_up().start()};
  }
  switch (rate.schedule_case()) {
    case LearningRate::kExponential:
      schedule.kind = ToDecay<ExponentialSchedule>(rate.exponential());
      break;
    case LearningRate::kNaturalExp:
      schedule.kind = ToDecay<NaturalExponentialSchedule>(rate.natural_exp());
      break;
    case LearningRate::kInverseTime:
      schedule.kind = ToDecay<InverseTimeSchedule>(rate.inverse_time());
      break;
    case LearningRate::kPiecewise:
      schedule.kind = PiecewiseSchedule{
          .boundaries = {rate.piecewise().boundaries().begin(),
                         rate.piecewise().boundaries().end()},
          .values = {rate.piecewise().values().begin(), rate.piecewise().values().end()}};
      break;
    case LearningRate::kPolynomial:
      schedule.kind = PolynomialSchedule{.decay_steps = rate.polynomial().decay_steps(),
                                         .end = rate.polynomial().end_learning_rate(),
                                         .power = rate.polynomial().power(),
                                         .cycle = rate.polynomial().cycle()};
      break;
    case LearningRate::kCosine:
      schedule.kind = CosineSchedule{.decay_steps = rate.cosine().decay_steps(),
                                     .alpha = rate.cosine().alpha()};
      break;
    case LearningRate::kConstant:
    case LearningRate::SCHEDULE_NOT_SET:
      schedule.kind = ConstantSchedule();
      break;
  }
  return schedule;
}

}  // namespace lockstep
