// y = gamma (x - mean) / sqrt(variance + epsilon) + beta, per channel. Training takes mean and
// (biased) variance of the batch, inference the moving ones. Variables: gamma, beta, moving_mean,
// moving_variance, each [channels]; the last two are statistics, whose new value is
// momentum * old + (1 - momentum) * of the batch.
#pragma once

#include "worker/ops/op.h"

namespace lockstep::worker {

struct BatchNormOptions : OpOptions {
  static constexpr absl::string_view kKind = "batch_norm";
  int64_t positions = 1;  // per example: all dimensions but the last
  int64_t channels = 1;
  float momentum = 0.99f;
  float epsilon = 0.001f;
  bool relu = false;  // y is cut off at 0
  // Training takes the moving statistics too. Without variable_gradients.
  bool frozen = false;
};

}  // namespace lockstep::worker
