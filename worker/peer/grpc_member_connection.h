// A member over gRPC, and on one host the memory that it reads.
#pragma once

#include "common/transport/grpc/grpc_transport.h"
#include "common/transport/grpc_shm/shared_memory_connection.h"
#include "worker/peer/member_connection.h"

namespace lockstep::worker {

class GrpcMemberConnection final : public MemberConnection {
 public:
  using Memory = SharedMemoryConnection::Memory;

  // `memory`: what the member may read, if it is on this host. Null: elements travel as bytes.
  // `attached` is told once whether it does; may be null.
  GrpcMemberConnection(const ClientOptions& options, const PeerIdentity& self, Memory memory,
                       StatusCallback attached);

  void Send(SendRequest header, std::span<const std::byte> elements, StatusCallback done) override;
  void Compare(CompareRequest own, StatusCallback done) override;
  void Probe(ProbeRequest request, Callback<ProbeReply> done) override;
  void ReadState(ReadStateRequest request, Callback<ReadStateReply> done) override;
  void Cancel() override { transport_.Cancel(); }

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
