// Reads the memory and the CPU time of a running process from the system.
#pragma once

#include <cstdint>

#include "absl/time/time.h"
#include "tests/support/process.h"

namespace lockstep::test {

struct ProcessMemory {
  uint64_t peak = 0;    // bytes that were in memory at once: own, of files, and shared with others
  uint64_t shared = 0;  // bytes of shared memory that it has in memory now
  uint64_t own = 0;     // bytes of its heaps and stacks that are in memory now
  int threads = 0;
};

// Resets the peak to the present value.
void ForgetPeak(const Process& process);

// All 0 if the process has ended.
ProcessMemory MemoryOf(const Process& process);

// Returns its user and system CPU time until now, to 10 ms. 0 if the process has ended.
absl::Duration CpuTimeOf(const Process& process);

}  // namespace lockstep::test
