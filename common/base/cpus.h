// The number of CPUs that this process may use: those of its affinity, within the CPU quota of its
// control group.
#pragma once

#include <string>

namespace lockstep {

// At least 1. A quota of a part of a CPU counts as a whole one.
int UsableCpus();

// The same with the files of control groups (/proc/self/cgroup and the tree /sys/fs/cgroup) read
// below another root.
int UsableCpus(const std::string& root);

}  // namespace lockstep
