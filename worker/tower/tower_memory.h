// TowerMemory is the values and the gradient memory with which a tower trains.
#pragma once

#include <span>

#include "common/tensor/tensor.h"
#include "worker/tower/variable_values.h"

namespace lockstep::worker {

struct TowerMemory {
  VariableValues values;
  // In host memory, by variable: they receive the gradients that Tower::Train describes.
  std::span<const MutableTensorView> gradients;
};

}  // namespace lockstep::worker
