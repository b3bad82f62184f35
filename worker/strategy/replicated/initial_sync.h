// Texts for a worker's log about the initial sync, which copies the state of tower 0 to its other
// towers. tensorpack's replicated trainer logs the same.
#pragma once

#include <string>
#include <vector>

#include "worker/cache/variable_layout.h"
#include "worker/strategy/replicated/replica_state.h"

namespace lockstep::worker {

// States how many variables and slots are copied to how many towers. Empty with one tower, which
// has no initial sync. The last variable of the state, the loss, is not counted.
std::string InitialSyncText(const ReplicaState& state, int towers);

// One warning for each untrained variable whose name is that of another tower's copy of a variable
// that the model lacks.
std::vector<std::string> InitialSyncWarnings(const VariableLayout& layout, int towers);

}  // namespace lockstep::worker
