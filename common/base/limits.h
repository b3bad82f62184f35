// How much a peer may send: one row for each number, text or list that comes in a message.
//
// A message above a limit is refused with INVALID_ARGUMENT, before anything in it is used or stored.
// The size of a message as a whole and the deadlines are in common/rpc/limits.h.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lockstep::limits {

// Text.

// A host name or address: a domain name has at most 253 bytes, a port 5 digits.
inline constexpr size_t kMaxHostBytes = 260;
inline constexpr size_t kMaxVersionBytes = 64;
// What a worker says that it waits for, shown in the status.
inline constexpr size_t kMaxWaitingForBytes = 500;
// An error that a worker reports: the text of a status that crosses the wire is cut there, too.
inline constexpr size_t kMaxErrorBytes = 2000;

// Lists.

// Of evaluations in one heartbeat: a worker holds a lease at a time and repeats what was not
// acknowledged.
inline constexpr size_t kMaxEvaluationResults = 1024;
// Registrations that wait, beyond one for each worker: processes of the same index that contend.
inline constexpr size_t kMaxContendingRegistrations = 256;

}  // namespace lockstep::limits
