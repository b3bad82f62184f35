// What the system says about a process that runs.
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

// Lets the peak begin with what is there now.
void ForgetPeak(const Process& process);

// All 0 of one that has ended.
ProcessMemory MemoryOf(const Process& process);

// What the processors have spent on it until now, in the system as well; to 10 ms. 0 of one that
// has ended.
absl::Duration CpuTimeOf(const Process& process);

}  // namespace lockstep::test
