// A running process whose descriptors run out.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "tests/chaos/ongoing_fault.h"

namespace lockstep::test {

// Lowers the soft limit of the process (RLIMIT_NOFILE) to what it has open, until the fault is
// healed, and connects to `address`, where it listens.
std::unique_ptr<OngoingFault> TakeDescriptors(pid_t pid, const std::string& address);

}  // namespace lockstep::test
