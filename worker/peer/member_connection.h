// The way to one member of a group: its peer service, and on one host the memory that it reads.
#pragma once

#include <memory>
#include <span>

#include "common/base/callback.h"
#include "common/transport/grpc/grpc_transport.h"
#include "common/transport/grpc_shm/shared_memory_connection.h"
#include "proto/peer.pb.h"

namespace lockstep::worker {

// Thread-safe. A callback is called exactly once, on any thread or before the call returns.
// Destruction cancels what is in flight and waits for the callbacks.
class MemberConnection {
 public:
  using Memory = SharedMemoryConnection::Memory;

  // `memory`: what the member may read, if it is on this host. Null: elements travel as bytes.
  // `attached` is told once whether it does; may be null.
  MemberConnection(const ClientOptions& options, const PeerIdentity& self, Memory memory,
                   StatusCallback attached);

  // Sends a message. `elements` stay unchanged until `done`. UNAVAILABLE, NOT_FOUND: repeat it.
  void Send(SendRequest header, std::span<const std::byte> elements, StatusCallback done);
  void Probe(Callback<ProbeReply> done);
  // Ends what is in flight, and every later call, with CANCELLED.
  void Cancel() { transport_.Cancel(); }

 private:
  // Agrees on the memory first, as long as that is not settled.
  void Attach(StatusCallback done);
  void SendNow(SendRequest header, std::span<const std::byte> elements, StatusCallback done);

  const PeerIdentity self_;
  const bool has_memory_;
  SharedMemoryConnection memory_;
  GrpcTransport transport_;  // last: its callbacks use the rest
};

}  // namespace lockstep::worker
