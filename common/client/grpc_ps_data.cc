// PsData over gRPC.
#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/client/mapped_values.h"
#include "common/client/ps_client.h"
#include "common/client/raw_channel.h"
#include "common/client/shared_memory_connection.h"
#include "common/rpc/limits.h"
#include "common/tensor/half_copy.h"
#include "common/tensor/non_temporal_copy.h"
#include "common/tensor/segmented_reader.h"
#include "common/tensor/tensor.h"
#include "common/wire/byte_buffer.h"

namespace lockstep {
namespace {

constexpr char kPush[] = "/lockstep.ParameterServer/Push";
constexpr char kPull[] = "/lockstep.ParameterServer/Pull";
constexpr char kDequeueToken[] = "/lockstep.ParameterServer/DequeueToken";
constexpr char kAttachMemory[] = "/lockstep.ParameterServer/AttachMemory";

// What the answer to a pull needs, where that may be places in memory; otherwise nothing.
struct Asked {
  PullRequest request;
  // The ps's values; null where they cannot be seen, and then places must not be asked for: the ps
  // may be a moment ahead in knowing that they can.
  std::shared_ptr<const shm::Segment> memory;
};

class ReceivedValues final : public PulledValues {
 public:
  static absl::StatusOr<std::unique_ptr<PulledValues>> Read(PullReply header,
                                                            wire::ReceivedPayload payload,
                                                            const Asked& asked) {
    if (header.in_memory()) {
      if (asked.memory != nullptr) {
        return MappedValues::Read(asked.request, std::move(header), asked.memory);
      }
      return absl::InvalidArgumentError("places in a memory that was not exchanged");
    }
    auto values = std::make_unique<ReceivedValues>();
    values->header_ = std::move(header);
    values->payload_ = std::move(payload);
    uint64_t expected = 0;
    for (const PullPiece& piece : values->header_.pieces()) expected += piece.size();
    if (expected != values->payload_.bytes()) {
      return absl::InvalidArgumentError(
          absl::StrCat("pieces of ", expected, " bytes, payload of ", values->payload_.bytes()));
    }
    return values;
  }

  const PullReply& header() const override { return header_; }

  absl::Status CopyTo(std::span<const std::span<std::byte>> targets) const override {
    LOCKSTEP_RETURN_IF_ERROR(CheckTargets(header_, targets));
    SegmentedReader cursor(payload_.spans());
    for (const std::span<std::byte>& target : targets) cursor.CopyTo(target);
    return absl::OkStatus();
  }

  absl::Status WidenTo(DType wire_type, std::span<const std::span<float>> targets) const override {
    LOCKSTEP_RETURN_IF_ERROR(CheckNarrowTargets(header_, wire_type, targets));
    SegmentedReader cursor(payload_.spans());
    for (const std::span<float> target : targets) WidenFrom(&cursor, wire_type, target);
    return absl::OkStatus();
  }

 private:
  // By way of a few elements that stay in the nearest cache: the slices in which the payload came
  // cut through elements.
  static void WidenFrom(SegmentedReader* cursor, DType wire_type, std::span<float> target) {
    alignas(Tensor::kAlignment) std::array<std::byte, 8192> block;
    alignas(Tensor::kAlignment) std::array<float, block.size() / 2> wide;
    const bool is_streamed = target.size_bytes() >= kStreamedBytes;
    while (!target.empty()) {
      const size_t count = std::min(wide.size(), target.size());
      cursor->CopyTo(std::span(block).first(count * SizeOf(wire_type)));
      Widen(wire_type, block.data(),
            is_streamed ? std::span(wide).first(count) : target.first(count));
      if (is_streamed) NonTemporalCopy(target.data(), wide.data(), count * sizeof(float));
      target = target.subspan(count);
    }
    if (is_streamed) FlushStreams();
  }

  PullReply header_;
  wire::ReceivedPayload payload_;
};

absl::StatusOr<std::unique_ptr<PulledValues>> DecodePull(const grpc::ByteBuffer& buffer,
                                                         const Asked& asked) {
  PullReply header;
  LOCKSTEP_ASSIGN_OR_RETURN(wire::ReceivedPayload payload,
                            wire::DecodeWithPayload(buffer, &header));
  return ReceivedValues::Read(std::move(header), std::move(payload), asked);
}

absl::StatusOr<PushPullReply> DecodePushPull(const grpc::ByteBuffer& buffer, const Asked& asked) {
  PushPullReply reply;
  LOCKSTEP_ASSIGN_OR_RETURN(wire::ReceivedPayload payload,
                            wire::DecodeWithPayload(buffer, &reply.push));
  if (reply.push.next().has_values()) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        reply.values, ReceivedValues::Read(std::move(*reply.push.mutable_next()->mutable_values()),
                                           std::move(payload), asked));
  }
  return reply;
}

class GrpcPsData final : public PsData {
 public:
  GrpcPsData(const ClientOptions& options, SharedMemoryOptions memory)
      : options_(options), connection_(std::move(memory)), channel_(options) {}

  void Push(const PushRequest& header, std::vector<std::span<const std::byte>> payload,
            Done<PushReply> done) override {
    Attach(header.worker());
    SendPush<PushReply>(header, std::move(payload), rpc::kDataDeadline, std::move(done));
  }

  void PushPull(const PushRequest& header, std::vector<std::span<const std::byte>> payload,
                Done<PushPullReply> done) override {
    Attach(header.worker());
    Asked asked = AskedBy(header.next().pull());
    if (header.next().pull().in_memory() && asked.memory == nullptr) {
      PushRequest for_bytes = header;
      for_bytes.mutable_next()->mutable_pull()->set_in_memory(false);
      return PushPull(for_bytes, std::move(payload), std::move(done));
    }
    SendPush<grpc::ByteBuffer>(header, std::move(payload), rpc::kParkedDeadline,
                               [this, asked = std::move(asked), done = std::move(done)](
                                   const absl::StatusOr<grpc::ByteBuffer>& buffer) {
                                 if (!buffer.ok()) return done(buffer.status());
                                 auto reply = DecodePushPull(*buffer, asked);
                                 if (!reply.ok()) return done(BadReply(options_, reply.status()));
                                 done(std::move(reply));
                               });
  }

  void Pull(const PullRequest& request, Done<std::unique_ptr<PulledValues>> done) override {
    Attach(request.worker());
    Asked asked = AskedBy(request);
    if (request.in_memory() && asked.memory == nullptr) {
      PullRequest for_bytes = request;
      for_bytes.set_in_memory(false);
      return Pull(for_bytes, std::move(done));
    }
    channel_.Call(kPull, request, {}, rpc::kParkedDeadline,
                  RawChannel::Callback([this, asked = std::move(asked), done = std::move(done)](
                                           absl::StatusOr<grpc::ByteBuffer> reply) {
                    if (!reply.ok()) return done(reply.status());
                    auto values = DecodePull(*reply, asked);
                    if (!values.ok()) return done(BadReply(options_, values.status()));
                    done(std::move(values));
                  }));
  }

  void DequeueToken(const DequeueTokenRequest& request, Done<DequeueTokenReply> done) override {
    channel_.Call(kDequeueToken, request, rpc::kParkedDeadline, std::move(done));
  }

  void ShareMemory(const WorkerIdentity& worker, Done<bool> done) override {
    Attach(worker);
    connection_.Await(std::move(done));
  }

  void Cancel() override { channel_.Cancel(); }

  bool SharesMemory() const override { return connection_.was_attached(); }

  bool SharesGradient(std::span<const std::byte> bytes) const override {
    return connection_.PlaceOf(bytes).has_value();
  }
  bool SharesValues() const override { return connection_.values() != nullptr; }

 private:
  // Beside the worker's own calls: these go on in messages meanwhile.
  void Attach(const WorkerIdentity& worker) {
    const std::optional<AttachMemoryRequest> request = connection_.Begin(worker);
    if (!request.has_value()) return;
    channel_.Call(kAttachMemory, *request, rpc::kControlDeadline,
                  Done<AttachMemoryReply>([this](const absl::StatusOr<AttachMemoryReply>& reply) {
                    connection_.Complete(reply);
                  }));
  }

  Asked AskedBy(const PullRequest& pull) const {
    return pull.in_memory() ? Asked{pull, connection_.values()} : Asked();
  }

  // `Reply`: decoded, or raw.
  template <typename Reply>
  void SendPush(const PushRequest& header, std::vector<std::span<const std::byte>> payload,
                absl::Duration deadline, Done<Reply> done) {
    if (!header.in_memory() || header.ask()) {
      return channel_.Call(kPush, header, payload, deadline, std::move(done));
    }
    PushRequest placed = header;
    std::vector<std::span<const std::byte>> indices;
    size_t span = 0;
    for (PushPiece& piece : *placed.mutable_pieces()) {
      if (piece.rows() > 0) indices.push_back(payload[span++]);
      const std::optional<uint64_t> place = connection_.PlaceOf(payload[span++]);
      if (!place.has_value()) {
        return done(absl::NotFoundError(absl::StrCat(options_.name, " has not this memory")));
      }
      piece.set_place(*place);
    }
    channel_.Call(kPush, placed, std::move(indices), deadline,
                  Done<Reply>([this, done = std::move(done)](absl::StatusOr<Reply> reply) {
                    if (absl::IsNotFound(reply.status())) connection_.Lose();
                    done(std::move(reply));
                  }));
  }

  const ClientOptions options_;
  SharedMemoryConnection connection_;
  RawChannel channel_;  // last: its callbacks use the rest
};

}  // namespace

std::unique_ptr<PsData> MakePsData(const ClientOptions& options, SharedMemoryOptions memory) {
  return std::make_unique<GrpcPsData>(options, std::move(memory));
}

}  // namespace lockstep
