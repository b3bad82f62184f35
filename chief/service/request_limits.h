// What a worker's call may hold: common/base/limits.h, for the chief's methods.
//
// Pure.
#pragma once

#include "absl/status/status.h"
#include "proto/chief.pb.h"

namespace lockstep::chief {

// INVALID_ARGUMENT naming the field, its size and the limit. Before anything in the request is
// compared, stored or logged.
absl::Status CheckLimits(const RegisterTaskRequest& request);
absl::Status CheckLimits(const HeartbeatRequest& request);

}  // namespace lockstep::chief
