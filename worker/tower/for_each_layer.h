// Goes over gradients layer by layer, as towers finish them.
#pragma once

#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "worker/tower/tower_reducer.h"

namespace lockstep::worker {

// Calls `tell` with the variables of each layer, those that follow one another in `descending` and
// share an event in `of_tower`. Ends with the first error. `group` is memory for their list.
absl::Status ForEachLayer(std::span<const int> descending, std::span<const TowerGradient> of_tower,
                          std::vector<int>* group,
                          absl::FunctionRef<absl::Status(std::span<const int>)> tell);

}  // namespace lockstep::worker
