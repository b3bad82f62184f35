// PsData over a TensorTransport.
#include <atomic>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/client/ps_client.h"
#include "common/client/ps_transport.h"
#include "common/tensor/half_width.h"
#include "common/transport/ps_methods.h"

namespace lockstep {
namespace {

using Spans = std::vector<std::span<const std::byte>>;

absl::Status CheckTarget(const PullPiece& piece, uint64_t bytes) {
  if (piece.size() == bytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("variable ", piece.variable(), ": pulled ",
                                                 piece.size(), " bytes, target of ", bytes));
}

// Each target has the size of its piece; `element_bytes` of a target of one byte.
template <typename T>
absl::Status CheckTargets(const PullReply& header, std::span<const std::span<T>> targets,
                          size_t element_bytes) {
  if (targets.size() != static_cast<size_t>(header.pieces_size())) {
    return absl::InvalidArgumentError(
        absl::StrCat("pulled ", header.pieces_size(), " pieces, targets for ", targets.size()));
  }
  for (size_t i = 0; i < targets.size(); ++i) {
    if (targets[i].data() == nullptr) continue;
    LOCKSTEP_RETURN_IF_ERROR(
        CheckTarget(header.pieces(static_cast<int>(i)), targets[i].size() * element_bytes));
  }
  return absl::OkStatus();
}

class TransportedValues final : public PulledValues {
 public:
  TransportedValues(PullReply header, ReceivedTensors tensors)
      : header_(std::move(header)), tensors_(std::move(tensors)) {
    for (const ReceivedTensors::Reference& reference : tensors_.references()) {
      in_place_.push_back(reference.values);
    }
  }

  const PullReply& header() const override { return header_; }
  absl::Status CopyTo(std::span<const std::span<std::byte>> targets) const override {
    LOCKSTEP_RETURN_IF_ERROR(CheckTargets(header_, targets, 1));
    return tensors_.CopyTo(targets);
  }
  absl::Status WidenTo(DType wire_type, std::span<const std::span<float>> targets) const override {
    if (IsHalfWidth(wire_type)) {
      LOCKSTEP_RETURN_IF_ERROR(CheckTargets(header_, targets, SizeOf(wire_type)));
    }
    return tensors_.WidenTo(wire_type, targets);
  }
  std::span<const std::span<const std::byte>> in_place() const override { return in_place_; }

 private:
  const PullReply header_;
  const ReceivedTensors tensors_;
  Spans in_place_;
};

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
  TransportPsData(const ClientOptions& options, SharedMemoryOptions memory)
      : options_(options),
        memory_(std::move(memory)),
        transport_(MakePsTransport(options, memory_.gradients)) {}

  void Push(const PushRequest& header, Spans payload, Callback<PushReply> done) override {
    Open(header.worker());
    Send(kPush, header, payload, false,
         [done = std::move(done)](absl::StatusOr<TensorReply<PushReply>> reply) mutable {
           if (!reply.ok()) return done(reply.status());
           done(std::move(reply->header));
         });
  }

  void PushPull(const PushRequest& header, Spans payload, Callback<PushPullReply> done) override {
    Open(header.worker());
    Send(kPushAndFetch, header, payload, header.next().pull().in_memory(),
         [this, done = std::move(done)](absl::StatusOr<TensorReply<PushReply>> reply) mutable {
           if (!reply.ok()) return done(reply.status());
           PushPullReply result{std::move(reply->header), nullptr};
           if (result.push.next().has_values()) {
             auto values = Values(std::move(*result.push.mutable_next()->mutable_values()),
                                  std::move(reply->tensors));
             if (!values.ok()) return done(values.status());
             result.values = *std::move(values);
           }
           done(std::move(result));
         });
  }

  void Pull(const PullRequest& request, Callback<std::unique_ptr<PulledValues>> done) override {
    Open(request.worker());
    PullRequest header = request;
    header.set_in_memory(false);
    transport_->Call(
        kPull, std::move(header), {}, request.in_memory(),
        [this, done = std::move(done)](absl::StatusOr<TensorReply<PullReply>> reply) mutable {
          if (!reply.ok()) return done(reply.status());
          done(Values(std::move(reply->header), std::move(reply->tensors)));
        });
  }

  void DequeueToken(const DequeueTokenRequest& request, Callback<DequeueTokenReply> done) override {
    transport_->Call(
        kDequeueToken, request, {}, false,
        [done = std::move(done)](absl::StatusOr<TensorReply<DequeueTokenReply>> reply) mutable {
          if (!reply.ok()) return done(reply.status());
          done(std::move(reply->header));
        });
  }

  void ShareMemory(const WorkerIdentity& worker, Callback<bool> done) override {
    transport_->Open(worker,
                     [this, done = std::move(done)](absl::StatusOr<TransportInfo> info) mutable {
                       OnOpened(info);
                       if (!info.ok()) return done(info.status());
                       done(info->references.ok());
                     });
  }

  void Cancel() override { transport_->Cancel(); }
  bool SharesMemory() const override {
    // The callback of Open may be yet to come.
    return has_shared_.load() || transport_->ReceivesByReference();
  }
  bool SharesGradient(std::span<const std::byte> bytes) const override {
    return transport_->SendsByReference(bytes);
  }
  bool SharesValues() const override { return transport_->ReceivesByReference(); }

 private:
  // Beside the worker's own calls: these go on in messages meanwhile.
  void Open(const WorkerIdentity& worker) {
    if (memory_.gradients == nullptr || is_open_.exchange(true)) return;
    transport_->Open(worker, [this](const absl::StatusOr<TransportInfo>& info) { OnOpened(info); });
  }

  void OnOpened(const absl::StatusOr<TransportInfo>& info) {
    if (!info.ok()) {
      is_open_.store(false);
      return;
    }
    if (info->references.ok()) has_shared_.store(true);
    if (memory_.gradients == nullptr || has_told_.exchange(true)) return;
    if (memory_.told) memory_.told(info->references);
  }

  template <typename Callback>
  void Send(const TensorMethod<PushRequest, PushReply>& method, const PushRequest& header,
            const Spans& payload, bool accepts_references, Callback done) {
    const std::vector<OutgoingTensor> tensors = TensorsOf(header, payload);
    PushRequest alone = header;
    alone.set_in_memory(header.in_memory() && header.ask());
    if (alone.next().has_pull()) alone.mutable_next()->mutable_pull()->set_in_memory(false);
    transport_->Call(
        method, std::move(alone), tensors, accepts_references,
        [this, done = std::move(done)](absl::StatusOr<TensorReply<PushReply>> reply) mutable {
          if (absl::IsNotFound(reply.status())) is_open_.store(false);
          done(std::move(reply));
        });
  }

  absl::StatusOr<std::unique_ptr<PulledValues>> Values(PullReply header, ReceivedTensors tensors) {
    if (const absl::Status status = CheckTensors(header, tensors); !status.ok()) {
      return BadReply(options_, status);
    }
    return std::make_unique<TransportedValues>(std::move(header), std::move(tensors));
  }

  const ClientOptions options_;
  const SharedMemoryOptions memory_;
  std::atomic<bool> is_open_ = false;
  std::atomic<bool> has_shared_ = false;
  std::atomic<bool> has_told_ = false;
  const std::unique_ptr<TensorTransport> transport_;  // last: its callbacks use the rest
};

}  // namespace

std::unique_ptr<PsData> MakePsData(const ClientOptions& options, SharedMemoryOptions memory) {
  return std::make_unique<TransportPsData>(options, std::move(memory));
}

}  // namespace lockstep
