// Whether there is memory for what a process is about to hold: the system would rather end a
// process than refuse.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"

namespace lockstep {

struct MemoryNeed {
  std::string error;              // what is wrong where there is no room, without the remedy
  std::optional<uint64_t> bytes;  // nullopt: more than can be counted
  std::string remedy;
};

struct ProcessMemory {
  std::optional<uint64_t> available;  // AvailableMemory
  std::optional<uint64_t> limit;      // MemoryLimit
};

// RESOURCE_EXHAUSTED where this process cannot take so many bytes. With the exit code of a wrong
// configuration where it never can; where others hold too much now, with that of what may pass by
// itself. Small amounts pass without a look at the system.
absl::Status CheckRoomFor(const MemoryNeed& need);
absl::Status CheckRoomFor(const MemoryNeed& need, const ProcessMemory& memory);

}  // namespace lockstep
