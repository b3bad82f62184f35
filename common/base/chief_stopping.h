// The error of a chief that exits. Operators tell it from a chief that is not there.
#pragma once

#include "absl/status/status.h"

namespace lockstep {

// The answer of a chief to calls that it leaves: UNAVAILABLE.
absl::Status ChiefStoppingError();

// True if `status` is that answer, also after it has crossed the wire and been annotated.
bool IsChiefStopping(const absl::Status& status);

}  // namespace lockstep
