// Free ports of this machine.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace lockstep::deploy {

// `count` different "127.0.0.1:port" that nobody listens on now, below the range from which the
// kernel gives ports to outgoing connections, so that none takes one of them before its owner
// starts. UNAVAILABLE when there are not enough.
absl::StatusOr<std::vector<std::string>> FreeLoopbackAddresses(int count);

}  // namespace lockstep::deploy
