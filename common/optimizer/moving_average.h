// Exponential moving averages of variables, TensorFlow's to the digit.
#pragma once

#include <memory>

#include "common/base/ids.h"
#include "common/optimizer/update_rule.h"

namespace lockstep {

// The slot that holds a variable's average; it begins as the variable's initial value.
inline constexpr char kAverageSlot[] = "ExponentialMovingAverage";

struct MovingAverageOptions {
  float decay = 0.9999f;
  // Limits the decay to (1 + n) / (10 + n), n the global step, so that the average follows quickly
  // at first.
  bool num_updates = false;
};

// `global_step` counts the updates, the one that is to be averaged included.
float AverageDecay(const MovingAverageOptions& options, GlobalStep global_step);

// average -= (average - value) * (1 - decay): float32 or float64, of one shape (CHECK).
void UpdateAverage(float decay, TensorView value, MutableTensorView average);

// `rule`, followed by the average of what it made, which is one more slot behind the rule's. A
// sparse update moves the average of every row, so it no longer touches only the named ones.
std::unique_ptr<const UpdateRule> MakeAveraged(std::unique_ptr<const UpdateRule> rule,
                                               const MovingAverageOptions& options);

}  // namespace lockstep
