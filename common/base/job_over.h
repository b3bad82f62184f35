// The error by which a ps says that its job is over. Its callers tell it from a call that was
// broken off.
#pragma once

#include "absl/status/status.h"

namespace lockstep {

// The answer of a ps to calls that still wait when the job ends: CANCELLED.
absl::Status JobOverError();

// True if `status` is that answer, also after it has crossed the wire and been annotated.
bool IsJobOver(const absl::Status& status);

}  // namespace lockstep
