// The names of replicated variables: tower 0 has those of the model, tower k the prefix "towerk/".
// The initial sync of tensorpack's replicated trainer finds by them which variable is copied from
// which.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace lockstep {

// Whether a variable of the model can be told from the towers' copies of others. INVALID_ARGUMENT,
// in the words of tensorpack, for a name that begins with a tower's prefix: that of tower 0, one
// that a tower puts before it again, and, of a trained variable, one without a counterpart. One
// tower has no copies: every name is right.
absl::Status CheckTowerName(absl::string_view variable, bool is_trained, int towers);

// The warning, also in the words of tensorpack, for an untrained variable that CheckTowerName takes
// although it has no counterpart. Empty for every other name that it takes.
std::string InitialSyncWarning(absl::string_view variable, int towers);

}  // namespace lockstep
