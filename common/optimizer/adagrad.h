// Adagrad, slot "accumulator": a += g * g, then w -= g * lr / sqrt(a). There is no epsilon: the
// initial accumulator stands for it.
#pragma once

#include <memory>

#include "common/optimizer/update_rule.h"

namespace lockstep {

struct AdagradOptions {
  float initial_accumulator_value = 0.1f;
};

std::unique_ptr<const UpdateRule> MakeAdagrad(const AdagradOptions& options);

}  // namespace lockstep
