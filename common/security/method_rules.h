// Which role may call which method: the one table for all processes. What it does not name is
// refused, so a new method is closed until it gets a row.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/security/caller.h"

namespace lockstep::security {

// Whether `method`, a path such as "/lockstep.Chief/Heartbeat", asks for no credentials: health,
// which orchestrators ask. Thread-safe, as the next.
bool IsOpenToAll(absl::string_view method);

// PERMISSION_DENIED, naming both: `caller` may not call `method`.
absl::Status CheckMethod(const Caller& caller, absl::string_view method);

}  // namespace lockstep::security
