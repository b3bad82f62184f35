// Limits on what a peer may send: one row for each number, text or list that comes in a message.
//
// A message with a value above a limit is refused before any of it is used or stored. Text that is
// only shown is cut. docs/limits.md has the error for each. The size of a message as a whole and
// the deadlines are in common/rpc/limits.h.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lockstep::limits {

// Text.

// A host name or address: a domain name has at most 253 bytes, a port 5 digits.
inline constexpr size_t kMaxHostBytes = 260;
inline constexpr size_t kMaxVersionBytes = 64;
// Text in which a worker names the event that it waits for, shown in the status.
inline constexpr size_t kMaxWaitingForBytes = 500;
// An error that a worker reports. The text of a status that crosses the wire is cut to it, too.
inline constexpr size_t kMaxErrorBytes = 2000;

// Name of a layer or a loss.
inline constexpr size_t kMaxNameBytes = 100;
// Name of a variable. A checkpoint allows 4096 bytes for the name of a tensor; that of a slot is
// longer than its variable's.
inline constexpr size_t kMaxVariableNameBytes = 4000;

// Numbers.

// Tasks of one role in a cluster spec.
inline constexpr size_t kMaxTasks = 65536;
// Workers of a cluster, and gradients of a step.
inline constexpr int64_t kMaxReplicas = int64_t{1} << 20;
inline constexpr int64_t kMaxTowers = 256;
// Examples of a batch, whose memory is taken at once.
inline constexpr int64_t kMaxBatch = int64_t{1} << 31;
// Batches that are prepared ahead.
inline constexpr int64_t kMaxPrefetch = 1024;

// Lists.

// Results of evaluations in one heartbeat: a worker holds one lease at a time and repeats the
// results that were not acknowledged.
inline constexpr size_t kMaxEvaluationResults = 1024;
// Tensors, or parts of tensors, in a message. A client requests 1 MiB of values at once: this many
// variables of 4 bytes.
inline constexpr size_t kMaxPieces = 262'144;
// Registrations that wait, beyond one for each worker: processes of the same index that contend.
inline constexpr size_t kMaxContendingRegistrations = 256;

// Calls of operators that wait for the end of a job.
inline constexpr size_t kMaxParkedStops = 64;

// Numbers of a job.

// The tokens of a FIFO queue before the first step: each is a step that a worker may be behind.
inline constexpr int64_t kMaxInitTokens = int64_t{1} << 31;
// Steps of a job: sums with counts of gradients stay far below the end of an int64.
inline constexpr int64_t kMaxStep = int64_t{1} << 62;
// The first push of a worker's incarnation that a ps sees may be any of its pushes. This many
// take 9 years at a million a second.
inline constexpr uint64_t kMaxPushSeq = uint64_t{1} << 48;
// Distance of a push from the last one that a ps saw of the worker, for each step from that of the
// last one on. A worker gives up few pushes on the way, and makes few in one step.
inline constexpr uint64_t kMaxPushSeqGap = 1'000;

// Evaluations that a ps keeps for the next chief.
inline constexpr size_t kMaxKeptEvaluations = 100;

// Calls that wait in a ps.

// Pulls of a worker. It requests all values of a shard at once, 1 MiB each: this many pulls for a
// shard of 64 GiB.
inline constexpr size_t kMaxParkedPullsOfWorker = 65'536;
// Bytes that such pulls name: 4 million rows.
inline constexpr uint64_t kMaxParkedBytesOfWorker = uint64_t{32} << 20;
// Pulls of all workers: 64 that wait for a shard of 2 GiB. gRPC keeps 17 to 24 KiB for a call that
// waits, independent of the bytes that it names, so these take 3 GiB at most.
inline constexpr size_t kMaxParkedPulls = 131'072;
inline constexpr uint64_t kMaxParkedBytes = uint64_t{512} << 20;
// Values in replies that a worker does not read, counted in versions of all of a shard's values. A
// worker requests one version, and one to evaluate. For small shards the limit is in bytes.
inline constexpr uint64_t kMaxUnreadVersionsOfWorker = 4;
inline constexpr uint64_t kMinUnreadBytesOfWorker = uint64_t{64} << 20;
// Bytes of a variable's other versions, where unread replies to the worker keep one of them. They
// are copied. A client has four messages of 1 MiB in flight, and asks again before gRPC has told
// the ps that a reply was sent: this is room for them twice, and for one message of 4 MiB, as
// clients have of values in shared memory.
inline constexpr uint64_t kMaxUnreadCopyBytes = uint64_t{12} << 20;
// Rows of tables in such replies, beside that many bytes: this many gradients of each table, of the
// largest that the ps has held so far. A worker requests all rows of a batch at once.
inline constexpr uint64_t kMaxUnreadGradientsOfRows = 2;
// Grants of an asynchronous job: a chief has one, or two while another takes over.
inline constexpr size_t kMaxParkedGrants = 16;
// Calls of standby chiefs. Those of processes that have died stay until the chief's lease ends.
inline constexpr size_t kMaxWatchers = 64;

}  // namespace lockstep::limits
