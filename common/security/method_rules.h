// Checks whether a role may call a method, by the method's option `callers` (proto/callers.proto).
// A method without it is refused, and so is one of a service that method_rules.cc does not read.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/security/caller.h"

namespace lockstep::security {

// Returns whether `method`, a path such as "/lockstep.Chief/Heartbeat", needs no credentials:
// health, which orchestrators call. Thread-safe, as is CheckMethod.
bool IsOpenToAll(absl::string_view method);

// PERMISSION_DENIED, naming both: `caller` may not call `method`.
absl::Status CheckMethod(const Caller& caller, absl::string_view method);

}  // namespace lockstep::security
