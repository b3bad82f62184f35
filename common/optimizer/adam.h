// Adam, slots "adam_m" and "adam_v", scalars "beta1_power" and "beta2_power" (beta^t in step t,
// kept in float32 whatever the variables are):
//   alpha = lr * sqrt(1 - beta2_power) / (1 - beta1_power)
//   m += (g - m) * (1 - beta1);  v += (g * g - v) * (1 - beta2)
//   w -= (m * alpha) / (sqrt(v) + epsilon)
// epsilon is the paper's "epsilon hat": added after the bias correction went into alpha.
#pragma once

#include <memory>

#include "common/optimizer/update_rule.h"

namespace lockstep {

struct AdamOptions {
  float beta1 = 0.9f;
  float beta2 = 0.999f;
  float epsilon = 1e-8f;
};

std::unique_ptr<const UpdateRule> MakeAdam(const AdamOptions& options);

}  // namespace lockstep
