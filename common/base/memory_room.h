// Checks that there is memory for data before a process takes it. The system would rather end a
// process than refuse memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"

namespace lockstep {

struct MemoryNeed {
  std::string error;              // the problem if there is no room, without the remedy
  std::optional<uint64_t> bytes;  // nullopt: more than can be counted
  std::string remedy;
};

struct ProcessMemory {
  std::optional<uint64_t> available;  // AvailableMemory
  std::optional<uint64_t> limit;      // MemoryLimit
};

// RESOURCE_EXHAUSTED where this process cannot take so many bytes. The exit code is
// kBadConfiguration if it never can, and kPeersLost if it could while others used less. Small
// amounts always pass.
absl::Status CheckRoomFor(const MemoryNeed& need);
absl::Status CheckRoomFor(const MemoryNeed& need, const ProcessMemory& memory);

}  // namespace lockstep
