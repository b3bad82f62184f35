// Momentum, slot "momentum": a = a * mu + g, then w -= a * lr, or in Nesterov's form
// w -= g * lr + a * mu * lr. Rows that a sparse gradient does not name keep their sum.
#pragma once

#include <memory>

#include "common/optimizer/update_rule.h"

namespace lockstep {

struct MomentumOptions {
  float momentum = 0;
  bool nesterov = false;
};

std::unique_ptr<const UpdateRule> MakeMomentum(const MomentumOptions& options);

}  // namespace lockstep
