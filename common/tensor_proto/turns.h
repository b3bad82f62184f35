// The turns of a job's losses as a placement tells them.
#pragma once

#include "absl/status/statusor.h"
#include "common/turns/gradient_turns.h"
#include "proto/tensor.pb.h"

namespace lockstep {

// INVALID_ARGUMENT: a turn of less than one step, more steps than can be counted, or a variable of
// a loss that has no turn.
absl::StatusOr<LossTurns> TurnsOf(const Placement& placement);

// As GradientTurns takes it.
int TurnOf(const VariableSpec& spec);

}  // namespace lockstep
