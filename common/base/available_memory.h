// Memory of this process: how much it can still take before the system ends a process, and how much
// it could take at most.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace lockstep {

// Bytes that this process can still take: the available memory of the machine, or less if the limit
// of a control group leaves less. nullopt where neither /proc/meminfo nor a control group says.
// Reads files at each call: not for a hot path. Thread-safe.
std::optional<uint64_t> AvailableMemory();

// The same if no memory were in use: the memory of the machine, or a lower limit.
std::optional<uint64_t> MemoryLimit();

// The same with /proc/meminfo, /proc/self/cgroup and the tree /sys/fs/cgroup read below another
// root.
std::optional<uint64_t> AvailableMemory(const std::string& root);
std::optional<uint64_t> MemoryLimit(const std::string& root);

}  // namespace lockstep
