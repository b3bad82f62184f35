// Identifies the machine of this process.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace lockstep::shm {

// The boot id of the running kernel: the same for two processes exactly when they share its memory.
absl::StatusOr<std::string> BootId();

}  // namespace lockstep::shm
