// PsData over a TensorTransport.
#include <utility>

#include "common/client/ps_transport.h"
#include "common/transport/ps_methods.h"
#include "tests/support/ps_data.h"

namespace lockstep {
namespace {

using Spans = std::vector<std::span<const std::byte>>;

// One tensor for each span, or, by reference, for each piece.
std::vector<OutgoingTensor> TensorsOf(const PushRequest& header, const Spans& payload) {
  std::vector<OutgoingTensor> tensors;
  if (!header.in_memory() || header.ask()) {
    for (const std::span<const std::byte> span : payload) tensors.push_back({.values = span});
    return tensors;
  }
  size_t span = 0;
  for (const PushPiece& piece : header.pieces()) {
    OutgoingTensor& tensor = tensors.emplace_back();
    tensor.by_reference = true;
    if (piece.rows() > 0) {
      const std::span<const std::byte> indices = payload[span++];
      tensor.row_indices = {reinterpret_cast<const int64_t*>(indices.data()),
                            indices.size() / sizeof(int64_t)};
    }
    tensor.values = payload[span++];
  }
  return tensors;
}

class TransportPsData final : public PsData {
 public:
  TransportPsData(const ClientOptions& options, const GradientMemory* gradients)
      : transport_(MakePsTransport(options, gradients)) {}

  void Push(const PushRequest& header, Spans payload, Callback<PushReply> done) override {
    Send(kPush, header, payload, false,
         [done = std::move(done)](absl::StatusOr<TensorReply<PushReply>> reply) mutable {
           if (!reply.ok()) return done(reply.status());
           done(*reply->header);
         });
  }

  void PushPull(const PushRequest& header, Spans payload, Callback<PushPullReply> done) override {
    Send(kPushAndFetch, header, payload, header.next().pull().in_memory(),
         [done = std::move(done)](absl::StatusOr<TensorReply<PushReply>> reply) mutable {
           if (!reply.ok()) return done(reply.status());
           PushPullReply result{*reply->header, nullptr};
           if (result.push.next().has_values()) {
             result.values = std::make_unique<PulledValues>(
                 std::move(*result.push.mutable_next()->mutable_values()),
                 std::move(reply->tensors));
           }
           done(std::move(result));
         });
  }

  void Pull(const PullRequest& request, Callback<std::unique_ptr<PulledValues>> done) override {
    PullRequest header = request;
    header.set_in_memory(false);
    transport_->Call(
        kPull, std::move(header), {}, request.in_memory(),
        [done = std::move(done)](absl::StatusOr<TensorReply<PullReply>> reply) mutable {
          if (!reply.ok()) return done(reply.status());
          done(std::make_unique<PulledValues>(*reply->header, std::move(reply->tensors)));
        });
  }

  void DequeueToken(const DequeueTokenRequest& request, Callback<DequeueTokenReply> done) override {
    transport_->Call(
        kDequeueToken, request, {}, false,
        [done = std::move(done)](absl::StatusOr<TensorReply<DequeueTokenReply>> reply) mutable {
          if (!reply.ok()) return done(reply.status());
          done(*reply->header);
        });
  }

  void ShareMemory(const WorkerIdentity& worker, Callback<bool> done) override {
    transport_->Open(worker,
                     [done = std::move(done)](const absl::StatusOr<TransportInfo>& info) mutable {
                       if (!info.ok()) return done(info.status());
                       done(info->references.ok());
                     });
  }

  void Cancel() override { transport_->Cancel(); }
  bool SharesMemory() const override { return !transport_->MayRound(); }
  bool SendsByReference(std::span<const std::byte> bytes) const override {
    return transport_->SendsByReference(bytes);
  }
  bool ReceivesByReference() const override { return transport_->ReceivesByReference(); }
  std::string peer() const override { return transport_->peer(); }

 private:
  void Send(const TensorMethod<PushRequest, PushReply>& method, const PushRequest& header,
            const Spans& payload, bool accepts_references, Callback<TensorReply<PushReply>> done) {
    PushRequest alone = header;
    alone.set_in_memory(false);
    if (alone.next().has_pull()) alone.mutable_next()->mutable_pull()->set_in_memory(false);
    transport_->Call(method, std::move(alone), TensorsOf(header, payload), accepts_references,
                     std::move(done));
  }

  const std::unique_ptr<TensorTransport> transport_;
};

}  // namespace

std::unique_ptr<PsData> MakePsData(const ClientOptions& options, const GradientMemory* gradients) {
  return std::make_unique<TransportPsData>(options, gradients);
}

}  // namespace lockstep
