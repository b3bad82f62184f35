// Adam, slots "m" and "v", scalars "beta1_power" and "beta2_power" (beta^t in step t, kept in
// float32 whatever the variables are):
//   alpha = lr * sqrt(1 - beta2_power) / (1 - beta1_power)
//   m += (g - m) * (1 - beta1);  v += (g * g - v) * (1 - beta2)
//   w -= (m * alpha) / (sqrt(v) + epsilon)
// epsilon is the paper's "epsilon hat": added after the bias correction went into alpha.
//
// A sparse gradient stands for zeros in the rows that it does not name: m and v decay and w moves
// in every row, as in TensorFlow. Lazy Adam changes the named rows alone.
//
// weight_decay is decoupled (AdamW): w -= w * weight_decay * lr first, in every row that the update
// touches.
#pragma once

#include <memory>

#include "common/optimizer/update_rule.h"

namespace lockstep {

struct AdamOptions {
  float beta1 = 0.9f;
  float beta2 = 0.999f;
  float epsilon = 1e-8f;
  bool lazy = false;
  float weight_decay = 0;
};

std::unique_ptr<const UpdateRule> MakeAdam(const AdamOptions& options);

}  // namespace lockstep
