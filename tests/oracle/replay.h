// Drives our classes through a script and compares what they answer with what TensorFlow did.
#pragma once

#include "absl/status/statusor.h"
#include "tests/oracle/comparison.h"
#include "tests/oracle/script.h"

namespace lockstep::oracle {

// INVALID_ARGUMENT, saying what, for a script that cannot be replayed: a kind or an optimizer that
// we do not have, a field that is missing.
absl::StatusOr<Comparison> Replay(const Script& script);

}  // namespace lockstep::oracle
