// Whether a process may and can listen on an address.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace lockstep::rpc {

// INVALID_ARGUMENT unless only this machine can reach `address`: 127.0.0.0/8, ::1, localhost.
absl::Status CheckLoopback(const std::string& address);

// Binds every address that "host:port" stands for, and lets go. UNAVAILABLE: one of them is in use.
// INVALID_ARGUMENT: the host is unknown or not of this machine. PERMISSION_DENIED: a port that
// needs privileges.
absl::Status TryBind(const std::string& address);

}  // namespace lockstep::rpc
