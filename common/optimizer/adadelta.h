// Adadelta, slots "accum" and "accum_update":
//   a = a * rho + g * g * (1 - rho)
//   u = sqrt(d + epsilon) / sqrt(a + epsilon) * g;  w -= u * lr
//   d = d * rho + u * u * (1 - rho)
#pragma once

#include <memory>

#include "common/optimizer/update_rule.h"

namespace lockstep {

struct AdadeltaOptions {
  float rho = 0.95f;
  float epsilon = 1e-8f;
};

std::unique_ptr<const UpdateRule> MakeAdadelta(const AdadeltaOptions& options);

}  // namespace lockstep
