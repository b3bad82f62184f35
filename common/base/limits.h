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

// Calls that wait in a ps.

// A worker asks for all values of a shard at once, in requests of 1 MiB: as many wait for a shard
// of 64 GiB.
inline constexpr size_t kMaxParkedPullsOfWorker = 65'536;
// What such pulls name: 8 million rows.
inline constexpr uint64_t kMaxParkedBytesOfWorker = uint64_t{64} << 20;
// Of all workers.
inline constexpr size_t kMaxParkedPulls = 1'048'576;
inline constexpr uint64_t kMaxParkedBytes = uint64_t{512} << 20;
// Grants of an asynchronous job: a chief has one, or two while another takes over.
inline constexpr size_t kMaxParkedGrants = 16;

}  // namespace lockstep::limits
