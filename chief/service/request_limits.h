// Checks the sizes of a worker's call to the chief against common/base/limits.h.
//
// Pure.
#pragma once

#include "absl/status/status.h"
#include "proto/chief.pb.h"

namespace lockstep::chief {

// INVALID_ARGUMENT naming the field, its size and the limit. Call it before any part of the request
// is compared, stored or logged.
absl::Status CheckLimits(const RegisterTaskRequest& request);
absl::Status CheckLimits(const HeartbeatRequest& request);

}  // namespace lockstep::chief
