#include "chief/plan/learning_rate.h"

namespace lockstep::chief {

LearningRateSchedule ToSchedule(const LearningRate& rate) {
  LearningRateSchedule schedule{.base = rate.base()};
  switch (rate.schedule_case()) {
    case LearningRate::kExponential:
      schedule.kind = ExponentialSchedule{.decay_rate = rate.exponential().decay_rate(),
                                          .decay_steps = rate.exponential().decay_steps(),
                                          .staircase = rate.exponential().staircase()};
      break;
    case LearningRate::kPiecewise:
      schedule.kind = PiecewiseSchedule{
          .boundaries = {rate.piecewise().boundaries().begin(),
                         rate.piecewise().boundaries().end()},
          .values = {rate.piecewise().values().begin(), rate.piecewise().values().end()}};
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

}  // namespace lockstep::chief
