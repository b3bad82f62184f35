// Follow the regularized leader, slots "accum" and "linear":
//   n' = n + g * g
//   z += g + 2 * l2_shrinkage * w - (n'^-p - n^-p) / lr * w, p the learning-rate power
//   w = (l1 * sign(z) - z) / (n'^-p / lr + 2 * l2) where |z| > l1, otherwise 0
//   n = n'
// beta adds beta / (2 * lr) to l2.
// In float32 the bits are TensorFlow's. For a power other than -0.5 they depend on where an element
// is (powers.h): a range of a variable that gets those of the whole begins at a multiple of eight.
#pragma once

#include <memory>

#include "common/optimizer/update_rule.h"

namespace lockstep {

struct FtrlOptions {
  float learning_rate_power = -0.5f;  // <= 0
  float initial_accumulator_value = 0.1f;
  float l1_regularization_strength = 0;
  float l2_regularization_strength = 0;
  float l2_shrinkage_regularization_strength = 0;
  float beta = 0;
};

std::unique_ptr<const UpdateRule> MakeFtrl(const FtrlOptions& options);

}  // namespace lockstep
