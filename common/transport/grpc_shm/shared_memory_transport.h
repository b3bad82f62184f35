// Tensors over gRPC to a ps that may be on this host. If it is, gradients in the worker's memory
// and published values are named in messages rather than sent. Sets and reads in_memory, place and
// stamp of proto/ps.proto.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/base/callback.h"
#include "common/transport/grpc/grpc_transport.h"
#include "common/transport/grpc_shm/shared_memory_connection.h"
#include "common/transport/tensor_transport.h"

namespace lockstep {

class SharedMemoryTransport final : public TensorTransport {
 public:
  // `gradients`: the memory into which the worker computes its gradients. Null: there is none, but
  // it wants to see the ps's. `opened` is told once: OK when memory was exchanged, otherwise why
  // tensors travel as bytes.
  SharedMemoryTransport(const ClientOptions& options, SharedMemoryConnection::Memory gradients,
                        StatusCallback opened = nullptr,
                        SharedMemoryConnection::Adopt adopt = nullptr)
      : connection_(std::move(gradients), std::move(opened), std::move(adopt)),
        transport_(options) {}

  void Open(const WorkerIdentity& worker, Callback<TransportInfo> done) override;
  std::string peer() const override { return transport_.peer(); }
  bool MayRound() const override { return !connection_.HasExchanged(); }
  bool SendsByReference(std::span<const std::byte> values) const override {
    return connection_.PlaceOf(values).has_value();
  }
  bool ReceivesByReference() const override { return connection_.values() != nullptr; }
  void Cancel() override { transport_.Cancel(); }

  void Start(const CallOptions& options, google::protobuf::Message* header,
             const std::vector<OutgoingTensor>& tensors, google::protobuf::Message* reply,
             Callback<ReceivedTensors> done) override;

 private:
  // What a reply by reference is read with. Without memory it must not be one.
  struct Asked {
    const PullRequest* request = nullptr;  // stays until the call has ended
    SharedMemoryConnection::Memory memory = nullptr;
  };

  // Names the tensors in the header. Those that still travel as bytes, or NOT_FOUND.
  absl::StatusOr<std::vector<OutgoingTensor>> Refer(const std::vector<OutgoingTensor>& tensors,
                                                    google::protobuf::Message* header) const;
  Asked Ask(google::protobuf::Message* header) const;
  absl::StatusOr<ReceivedTensors> Resolve(const Asked& asked,
                                          const google::protobuf::Message& reply,
                                          ReceivedTensors bytes) const;

  SharedMemoryConnection connection_;
  GrpcTransport transport_;  // last: its callbacks use the rest
};

}  // namespace lockstep
