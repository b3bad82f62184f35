// Functions that every daemon calls when it starts.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/ids.h"

namespace lockstep {

// Random, never 0.
uint64_t RandomId();

// Different for each start of each process.
Incarnation NewIncarnation();

// Returns this machine's name, from gethostname.
std::string HostName();

// Locks without abseil's search for deadlocks. Debian builds abseil so that it looks at every lock
// that is taken, gRPC's included, behind one lock of the whole process. First thing in main.
void TuneLocks();

// Keeps freed memory in the process: gRPC reads tensors into many short-lived pieces, and glibc's
// defaults hand their pages back to the kernel each time. Two arenas of glibc keep it, not one for
// every thread that ever received. First thing in main.
void TuneHeap();

// Gives the memory that TuneHeap keeps back to the kernel. Other threads that need memory wait
// meanwhile: 20 ms for 256 MiB.
void TrimHeap();

// Logs when the system's TCP congestion control is known to slow loopback down (bbr
// halves it). Says what to set; changes nothing.
void LogCongestionControl();

}  // namespace lockstep
