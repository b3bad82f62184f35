// Gradient descent: w -= g * lr.
#pragma once

#include <memory>

#include "common/optimizer/update_rule.h"

namespace lockstep {

std::unique_ptr<const UpdateRule> MakeSgd();

}  // namespace lockstep
