// What a tower trains with.
#pragma once

#include <span>

#include "common/tensor/tensor.h"
#include "worker/tower/variable_values.h"

namespace lockstep::worker {

struct TowerMemory {
  VariableValues values;
  // In host memory, by variable: they receive what Tower::Train tells.
  std::span<const MutableTensorView> gradients;
};

}  // namespace lockstep::worker
