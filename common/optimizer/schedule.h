// Learning-rate schedules as pure functions of the global step, in float32 and as TensorFlow runs
// them, not only as it writes them: a division by decay_steps is a multiplication by its rounded
// reciprocal. The update from step s to s + 1 uses the rate at s.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "common/base/ids.h"

namespace lockstep {

struct ConstantSchedule {};

// base * decay_rate ^ (step / decay_steps), the exponent rounded down in a staircase.
struct ExponentialSchedule {
  float decay_rate = 1;
  int64_t decay_steps = 1;
  bool staircase = false;
};

// base * exp(-decay_rate) ^ (step / decay_steps), the exponent rounded down in a staircase.
struct NaturalExponentialSchedule {
  float decay_rate = 1;
  int64_t decay_steps = 1;
  bool staircase = false;
};

// base / (1 + decay_rate * step / decay_steps), the quotient rounded down in a staircase.
struct InverseTimeSchedule {
  float decay_rate = 1;
  int64_t decay_steps = 1;
  bool staircase = false;
};

// values[i] up to and including boundaries[i]; the last value beyond them. The base is not used.
struct PiecewiseSchedule {
  std::vector<int64_t> boundaries;  // ascending
  std::vector<float> values;        // one more than boundaries
};

// (base - end) * (1 - s / decay_steps) ^ power + end, s = min(step, decay_steps). In cycles, s is
// the step, and decay_steps its first multiple that is not below s.
struct PolynomialSchedule {
  int64_t decay_steps = 1;
  float end = 0.0001f;
  float power = 1;
  bool cycle = false;
};

// base * ((1 - alpha) * (1 + cos(pi * s / decay_steps)) / 2 + alpha), s = min(step, decay_steps).
struct CosineSchedule {
  int64_t decay_steps = 1;
  float alpha = 0;
};

// Until `steps`, the rate rises in as many equal parts from `start` to the schedule's rate at
// `steps`; step 0 has the first part already. The schedule counts its steps from 0 all the same.
struct WarmUp {
  int64_t steps = 0;
  float start = 0;
};

struct LearningRateSchedule {
  float base = 0;
  std::variant<ConstantSchedule, ExponentialSchedule, NaturalExponentialSchedule,
               InverseTimeSchedule, PiecewiseSchedule, PolynomialSchedule, CosineSchedule>
      kind;
  WarmUp warm_up;
};

// decay_steps must be positive and a piecewise schedule have one value more than boundaries
// (CHECK): common/config refuses other job files.
float LearningRateAt(const LearningRateSchedule& schedule, GlobalStep step);

}  // namespace lockstep
