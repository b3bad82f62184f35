#include "worker/peer/grpc_member_connection.h"

#include <optional>
#include <utility>

#include "worker/peer/peer_methods.h"

namespace lockstep::worker {
namespace {

// Of a call whose answer has no elements.
template <typename Reply>
auto HeaderTo(Callback<Reply> done) {
  return [done = std::move(done)](absl::StatusOr<TensorReply<Reply>> reply) mutable {
    if (!reply.ok()) return done(reply.status());
    done(*reply->header);
  };
}

}  // namespace

GrpcMemberConnection::GrpcMemberConnection(const ClientOptions& options, const PeerIdentity& self,
                                           Memory memory, StatusCallback attached)
    : self_(self),
      has_memory_(memory != nullptr),
      memory_(std::move(memory), std::move(attached)),
      transport_(options) {}

void GrpcMemberConnection::Send(SendRequest header, std::span<const std::byte> elements,
                                StatusCallback done) {
  if (!has_memory_) return SendNow(std::move(header), elements, std::move(done));
  Attach([this, header = std::move(header), elements,
          done = std::move(done)](absl::Status status) mutable {
    if (!status.ok()) return done(std::move(status));
    SendNow(std::move(header), elements, std::move(done));
  });
}

void GrpcMemberConnection::Attach(StatusCallback done) {
  WorkerIdentity self;
  self.set_job(self_.job());
  self.set_epoch(self_.epoch());
  self.set_worker(self_.worker());
  self.set_incarnation(self_.incarnation());
  const std::optional<AttachMemoryRequest> asked = memory_.Begin(self);
  if (asked.has_value()) {
    AttachPeerMemoryRequest request;
    *request.mutable_sender() = self_;
    request.set_host(asked->host());
    transport_.Call(kAttachMemory, std::move(request), {}, false,
                    [this](absl::StatusOr<TensorReply<AttachMemoryReply>> reply) {
                      if (!reply.ok()) return memory_.Complete(reply.status());
                      memory_.Complete(*reply->header);
                    });
  }
  memory_.Await([done = std::move(done)](const absl::StatusOr<TransportInfo>& info) mutable {
    done(info.status());
  });
}

void GrpcMemberConnection::SendNow(SendRequest header, std::span<const std::byte> elements,
                                   StatusCallback done) {
  std::vector<OutgoingTensor> tensors;
  const std::optional<uint64_t> place = memory_.PlaceOf(elements);
  if (place.has_value()) {
    header.set_in_memory(true);
    header.set_place(*place);
    header.set_size(elements.size());
  } else {
    tensors.push_back({.values = elements});
  }
  transport_.Call(
      kSend, std::move(header), tensors, false,
      [this, done = std::move(done)](const absl::StatusOr<TensorReply<SendReply>>& reply) mutable {
        if (absl::IsNotFound(reply.status())) memory_.MarkLost();
        done(reply.status());
      });
}

void GrpcMemberConnection::Compare(CompareRequest own, StatusCallback done) {
  transport_.Call(
      kCompare, std::move(own), {}, false,
      [done = std::move(done)](const absl::StatusOr<TensorReply<CompareReply>>& reply) mutable {
        done(reply.status());
      });
}

void GrpcMemberConnection::Probe(ProbeRequest request, Callback<ProbeReply> done) {
  transport_.Call(kProbe, std::move(request), {}, false, HeaderTo(std::move(done)));
}

void GrpcMemberConnection::ReadState(ReadStateRequest request, Callback<ReadStateReply> done) {
  transport_.Call(kReadState, std::move(request), {}, false, HeaderTo(std::move(done)));
}

}  // namespace lockstep::worker
