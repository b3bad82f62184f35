// PsData over gRPC.
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/client/ps_client.h"
#include "common/client/raw_channel.h"
#include "common/rpc/limits.h"
#include "common/wire/byte_buffer.h"
#include "common/wire/piece_cursor.h"

namespace lockstep {
namespace {

constexpr char kPush[] = "/lockstep.ParameterServer/Push";
constexpr char kPull[] = "/lockstep.ParameterServer/Pull";
constexpr char kDequeueToken[] = "/lockstep.ParameterServer/DequeueToken";

// What comes from a ps and makes no sense is not the caller's mistake.
absl::Status BadReply(const ClientOptions& options, const absl::Status& status) {
  return absl::InternalError(
      absl::StrCat("reply of ", options.name, " (", options.address, "): ", status.message()));
}

class ReceivedValues final : public PulledValues {
 public:
  static absl::StatusOr<std::unique_ptr<PulledValues>> Read(const grpc::ByteBuffer& buffer) {
    auto values = std::make_unique<ReceivedValues>();
    LOCKSTEP_ASSIGN_OR_RETURN(values->payload_, wire::DecodeWithPayload(buffer, &values->header_));
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
    LOCKSTEP_RETURN_IF_ERROR(CheckSizes(targets));
    wire::PieceCursor cursor(payload_.spans());
    for (const std::span<std::byte>& target : targets) cursor.CopyTo(target);
    return absl::OkStatus();
  }

 private:
  absl::Status CheckSizes(std::span<const std::span<std::byte>> targets) const {
    if (targets.size() != static_cast<size_t>(header_.pieces_size())) {
      return absl::InvalidArgumentError(
          absl::StrCat("pulled ", header_.pieces_size(), " pieces, targets for ", targets.size()));
    }
    for (size_t i = 0; i < targets.size(); ++i) {
      const PullPiece& piece = header_.pieces(static_cast<int>(i));
      if (piece.size() == targets[i].size()) continue;
      return absl::InvalidArgumentError(absl::StrCat("variable ", piece.variable(), ": pulled ",
                                                     piece.size(), " bytes, target of ",
                                                     targets[i].size()));
    }
    return absl::OkStatus();
  }

  PullReply header_;
  wire::ReceivedPayload payload_;
};

class GrpcPsData final : public PsData {
 public:
  explicit GrpcPsData(const ClientOptions& options) : options_(options), channel_(options) {}

  void Push(const PushRequest& header, std::vector<std::span<const std::byte>> payload,
            Done<PushReply> done) override {
    channel_.Call(kPush, header, payload, rpc::kDataDeadline, Parsed(std::move(done)));
  }

  void Pull(const PullRequest& request, Done<std::unique_ptr<PulledValues>> done) override {
    channel_.Call(kPull, request, {}, rpc::kParkedDeadline,
                  [this, done = std::move(done)](absl::StatusOr<grpc::ByteBuffer> reply) {
                    if (!reply.ok()) return done(reply.status());
                    auto values = ReceivedValues::Read(*reply);
                    if (!values.ok()) return done(BadReply(options_, values.status()));
                    done(std::move(values));
                  });
  }

  void DequeueToken(const DequeueTokenRequest& request, Done<DequeueTokenReply> done) override {
    channel_.Call(kDequeueToken, request, {}, rpc::kParkedDeadline, Parsed(std::move(done)));
  }

  void Cancel() override { channel_.Cancel(); }

 private:
  template <typename Reply>
  RawChannel::Callback Parsed(Done<Reply> done) {
    return [this, done = std::move(done)](absl::StatusOr<grpc::ByteBuffer> buffer) {
      if (!buffer.ok()) return done(buffer.status());
      Reply reply;
      if (const absl::Status status = wire::Decode(*buffer, &reply); !status.ok())
        return done(BadReply(options_, status));
      done(std::move(reply));
    };
  }

  const ClientOptions options_;
  RawChannel channel_;  // last: its callbacks use the rest
};

}  // namespace

std::unique_ptr<PsData> MakePsData(const ClientOptions& options) {
  return std::make_unique<GrpcPsData>(options);
}

}  // namespace lockstep
