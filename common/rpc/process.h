// What every daemon does when it starts.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/ids.h"

namespace lockstep {

// Random, never 0.
uint64_t RandomId();

// Different for each start of each process.
Incarnation NewIncarnation();

// Of this machine, as it calls itself.
std::string HostName();

// Locks without abseil's search for deadlocks. Debian builds abseil so that it looks at every lock
// that is taken, gRPC's included, behind one lock of the whole process. First thing in main.
void TuneLocks();

// Keeps freed memory in the process: gRPC reads tensors into many short-lived pieces, and glibc's
// defaults hand their pages back to the kernel each time. What is kept is kept by two arenas of
// glibc's, not by one for every thread that ever received. First thing in main.
void TuneHeap();

// Gives back what TuneHeap keeps. Others who need memory wait meanwhile: 20 ms for 256 MiB.
void TrimHeap();

// Logs when the system's TCP congestion control is known to slow loopback down (bbr
// halves it). Says what to set; changes nothing.
void LogCongestionControl();

}  // namespace lockstep
