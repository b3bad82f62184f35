// Whether there is memory for what a data file holds.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace lockstep {

// RESOURCE_EXHAUSTED with the exit code of a wrong configuration, naming the file, where `bytes`
// are more than AvailableMemory says: the system would rather end a process than refuse. Small
// amounts pass without a look.
absl::Status CheckRoomFor(const std::string& file, int64_t bytes);

}  // namespace lockstep
