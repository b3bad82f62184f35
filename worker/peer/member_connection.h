// The way to one member of a group: an interface, and over gRPC its implementation.
#pragma once

#include <span>

#include "common/base/callback.h"
#include "proto/peer.pb.h"

namespace lockstep::worker {

// Thread-safe. A callback is called exactly once, on any thread or before the call returns, never
// under a lock. Destruction cancels what is in flight and waits for the callbacks.
class MemberConnection {
 public:
  virtual ~MemberConnection() = default;

  // Sends a message. `elements` stay unchanged until `done`. UNAVAILABLE, NOT_FOUND: repeat it.
  virtual void Send(SendRequest header, std::span<const std::byte> elements,
                    StatusCallback done) = 0;
  virtual void Compare(CompareRequest own, StatusCallback done) = 0;
  virtual void Probe(ProbeRequest request, Callback<ProbeReply> done) = 0;
  virtual void ReadState(ReadStateRequest request, Callback<ReadStateReply> done) = 0;
  // Ends what is in flight, and every later call, with CANCELLED.
  virtual void Cancel() = 0;
};

}  // namespace lockstep::worker
