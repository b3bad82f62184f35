// How much memory this process can take before the system ends a process: of what the machine has
// available, what the limits of its control groups leave. And how much it could take at the most.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace lockstep {

// Bytes. nullopt where neither /proc/meminfo nor a control group says. Reads files at each call:
// not for a hot path. Thread-safe.
std::optional<uint64_t> AvailableMemory();

// Of what the machine has, what the limits allow, were nothing in use. As above.
std::optional<uint64_t> MemoryLimit();

// The same with /proc/meminfo, /proc/self/cgroup and the tree /sys/fs/cgroup read below another
// root.
std::optional<uint64_t> AvailableMemory(const std::string& root);
std::optional<uint64_t> MemoryLimit(const std::string& root);

}  // namespace lockstep
