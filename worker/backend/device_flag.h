// --device of the programs that compute.
#pragma once

#include "absl/status/statusor.h"
#include "worker/backend/backend.h"

namespace lockstep::worker {

// What the flag says. A usage error, or that of Backend::Open.
absl::StatusOr<Backend> BackendOfFlag();

}  // namespace lockstep::worker
