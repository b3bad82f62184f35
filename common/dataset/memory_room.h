// Checks that there is memory for the content of a data file.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace lockstep {

// As CheckRoomFor of common/base/memory_room.h, naming the file.
absl::Status CheckRoomForData(const std::string& file, int64_t bytes);

}  // namespace lockstep
