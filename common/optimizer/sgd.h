// Gradient descent: w -= g * lr. Repeated rows are subtracted one after the other.
#pragma once

#include <memory>

#include "common/optimizer/update_rule.h"

namespace lockstep {

std::unique_ptr<const UpdateRule> MakeSgd();

}  // namespace lockstep
