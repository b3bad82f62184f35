// --listen: where a process listens, when that is not the address by which the others know it.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace lockstep {

// The address to listen on: `flag` ("host:port"), or without one `advertised`, which the cluster
// spec has. INVALID_ARGUMENT with exit code 64: the flag is no address.
absl::StatusOr<std::string> ListenAddress(const std::string& flag, const std::string& advertised);

}  // namespace lockstep
