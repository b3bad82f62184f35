// Tensors as bytes over gRPC: the slices of a request point to them, those of a reply are the ones
// that gRPC received. Nothing is copied, except that a tensor to be rounded is rounded into memory
// of the transport's as its message leaves.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/base/callback.h"
#include "common/tensor/tensor.h"
#include "common/transport/grpc/raw_channel.h"
#include "common/transport/tensor_transport.h"

namespace lockstep {

class GrpcTransport final : public TensorTransport {
 public:
  // Does not connect yet: the first call does.
  explicit GrpcTransport(const ClientOptions& options) : channel_(options) {}

  void Open(const WorkerIdentity& worker, Callback<TransportInfo> done) override;
  std::string peer() const override { return NameOf(options()); }
  bool MayRound() const override { return true; }
  bool SendsByReference(std::span<const std::byte>) const override { return false; }
  bool ReceivesByReference() const override { return false; }
  void Cancel() override { channel_.Cancel(); }

  // No tensor may go by reference (CHECK).
  void Start(const CallOptions& options, google::protobuf::Message* header,
             const std::vector<OutgoingTensor>& tensors, google::protobuf::Message* reply,
             Callback<ReceivedTensors> done) override;

  const ClientOptions& options() const { return channel_.options(); }

 private:
  // Rounded tensors of one message. Null: there are none.
  using Rounded = std::unique_ptr<Tensor>;

  Rounded TakeMemory(uint64_t bytes);
  void GiveBack(Rounded memory);
  // Rounds into the memory what is to be rounded. The spans of all tensors, in their order.
  static std::vector<std::span<const std::byte>> SpansOf(const std::vector<OutgoingTensor>& tensors,
                                                         Tensor* memory);

  absl::Mutex mutex_;
  std::vector<Rounded> spare_ ABSL_GUARDED_BY(mutex_);  // used again, so that a step allocates none
  RawChannel channel_;                                  // last: its callbacks use the rest
};

}  // namespace lockstep
