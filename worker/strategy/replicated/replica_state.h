// What a replica has at one version: values, slots, the optimizer's scalars.
#pragma once

#include <vector>

#include "common/base/ids.h"
#include "common/tensor/tensor.h"

namespace lockstep::worker {

struct ReplicaState {
  GlobalStep version;
  std::vector<Tensor> values;              // by variable of the layout
  std::vector<std::vector<Tensor>> slots;  // the same; in the order of the variable's rule
  std::vector<float> scalars;              // in the order of the rule
};

}  // namespace lockstep::worker
