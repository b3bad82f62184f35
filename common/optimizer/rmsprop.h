// RMSProp, slots "rms" (from 1 on), "momentum" and, when centered, "mg":
//   ms += (g * g - ms) * (1 - decay);  centered: mg += (g - mg) * (1 - decay)
//   mom = mom * momentum + g * lr / sqrt(ms + epsilon), centered ms - mg * mg for ms;  w -= mom
// epsilon is inside the root, the learning rate inside the momentum.
#pragma once

#include <memory>

#include "common/optimizer/update_rule.h"

namespace lockstep {

struct RmsPropOptions {
  float decay = 0.9f;
  float momentum = 0;
  float epsilon = 1e-10f;
  bool centered = false;
};

std::unique_ptr<const UpdateRule> MakeRmsProp(const RmsPropOptions& options);

}  // namespace lockstep
