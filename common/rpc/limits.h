// Numbers that both ends of a call must agree on. docs/protocol.md lists the deadlines per call.
#pragma once

#include <cstddef>

#include "absl/time/time.h"

namespace lockstep::rpc {

// A message above this is refused with RESOURCE_EXHAUSTED. Chunks are at most 1 MiB; the rest is
// room for placements of very many variables.
inline constexpr int kMaxMessageBytes = 16 * 1024 * 1024;

// Calls of a connection at once; its client waits with others. A worker awaits all chunks of its
// values at once: 64 GiB of them.
inline constexpr int kMaxStreams = 65536;

inline constexpr absl::Duration kControlDeadline = absl::Seconds(5);
inline constexpr absl::Duration kDataDeadline = absl::Seconds(60);
// Calls that wait for something: they end with DEADLINE_EXCEEDED and are issued again.
inline constexpr absl::Duration kParkedDeadline = absl::Seconds(60);
// Calls that read or write as much as the disk has.
inline constexpr absl::Duration kDiskDeadline = absl::Minutes(10);

// A peer that stops answering (power cut, pulled cable, SIGSTOP) is noticed within their sum.
inline constexpr absl::Duration kKeepaliveInterval = absl::Seconds(10);
inline constexpr absl::Duration kKeepaliveTimeout = absl::Seconds(5);
// What a server tolerates; below the interval, or it would call its clients a nuisance.
inline constexpr absl::Duration kMinPingInterval = absl::Seconds(5);

inline constexpr absl::Duration kMaxReconnectBackoff = absl::Seconds(2);

// Refused calls whose answers wait (common/rpc/refusal_sender.h), each of which takes some 20 KiB.
inline constexpr size_t kMaxHeldRefusals = 1024;

// Calls that watch the health of a process, which nobody needs credentials for.
inline constexpr size_t kMaxHealthWatches = 64;
// What such a caller may send: the name of a service.
inline constexpr size_t kMaxHealthRequestBytes = 1024;

}  // namespace lockstep::rpc
