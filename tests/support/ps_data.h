// A ps as tests call it and play it: a typed method for each call, in place of a header and
// tensors.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/callback.h"
#include "common/client/gradient_memory.h"
#include "common/transport/grpc/peer.h"
#include "common/transport/tensor_transport.h"
#include "proto/ps.pb.h"

namespace lockstep {

// The answer to a pull: the header (payload empty) and the values.
class PulledValues {
 public:
  PulledValues(PullReply header, ReceivedTensors tensors)
      : header_(std::move(header)), tensors_(std::move(tensors)) {}
  // With these bytes.
  PulledValues(PullReply header, std::string payload);

  const PullReply& header() const { return header_; }
  const ReceivedTensors& tensors() const { return tensors_; }
  // As of ReceivedTensors, one target for each piece.
  absl::Status CopyTo(std::span<const std::span<std::byte>> targets) const {
    return tensors_.CopyTo(targets);
  }
  absl::Status WidenTo(DType wire_type, std::span<const std::span<float>> targets) const {
    return tensors_.WidenTo(wire_type, targets);
  }

 private:
  const PullReply header_;
  const ReceivedTensors tensors_;
};

// The answer to a push that asked for what comes next.
struct PushPullReply {
  PushReply push;                        // with the token, if it came
  std::unique_ptr<PulledValues> values;  // null: they did not come
};

// To a session it is a transport. A header's in_memory says what goes by reference.
class PsData : public TensorTransport {
 public:
  // `header` has no payload; `payload` is the pieces' bytes and stays valid and unchanged until
  // `done` is called. With `in_memory` it has one span for each piece; of a sparse gradient that is
  // its values, and the span of its row indices comes before.
  virtual void Push(const PushRequest& header, std::vector<std::span<const std::byte>> payload,
                    Callback<PushReply> done) = 0;
  // Push with `next` in the header. Where it cannot be done in one call, the answer is that of a
  // push alone.
  virtual void PushPull(const PushRequest& header, std::vector<std::span<const std::byte>> payload,
                        Callback<PushPullReply> done);
  virtual void Pull(const PullRequest& request, Callback<std::unique_ptr<PulledValues>> done) = 0;
  virtual void DequeueToken(const DequeueTokenRequest& request,
                            Callback<DequeueTokenReply> done) = 0;
  // UNIMPLEMENTED where it is not overridden.
  virtual void StoreVersion(const StoreVersionRequest& header,
                            std::vector<std::span<const std::byte>> payload,
                            Callback<StoreVersionReply> done);
  // From a primary to its copy. UNIMPLEMENTED where it is not overridden.
  virtual void PutState(const PutStateRequest& header,
                        std::vector<std::span<const std::byte>> payload,
                        Callback<PutStateReply> done);
  // Whether memory is shared from now on.
  virtual void ShareMemory(const WorkerIdentity& /*worker*/, Callback<bool> done) { done(false); }
  virtual bool SharesMemory() const { return false; }

  void Open(const WorkerIdentity& worker, Callback<TransportInfo> done) final;
  std::string peer() const override { return "ps"; }
  bool MayRound() const final { return !SharesMemory(); }
  bool SendsByReference(std::span<const std::byte>) const override { return false; }
  bool ReceivesByReference() const override { return false; }
  void Start(const CallOptions& options, google::protobuf::Message* header,
             const std::vector<OutgoingTensor>& tensors, google::protobuf::Message* reply,
             Callback<ReceivedTensors> done) final;
};

// A ps at the other end of a transport, which may share memory.
std::unique_ptr<PsData> MakePsData(const ClientOptions& options,
                                   const GradientMemory* gradients = nullptr);

}  // namespace lockstep
