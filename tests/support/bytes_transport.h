// A transport on which every tensor travels as bytes, for peers that a test plays itself.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "common/transport/tensor_transport.h"

namespace lockstep::test {

// A test adds Cancel and Start, and overrides what else it plays.
class BytesTransport : public TensorTransport {
 public:
  void Open(const WorkerIdentity&, Callback<TransportInfo> done) override {
    done(TransportInfo{absl::UnavailableError("all travel as bytes")});
  }
  std::string peer() const override { return "the other end"; }
  bool MayRound() const override { return true; }
  bool SendsByReference(std::span<const std::byte>) const override { return false; }
  bool ReceivesByReference() const override { return false; }
};

// Answers as a shard that wants each gradient: the last chunk is judged.
inline void AcceptPush(const PushRequest& push, PushReply* reply) {
  reply->set_shard_step(push.local_step());
  for (const PushPiece& piece : push.pieces()) {
    const uint64_t end = static_cast<uint64_t>(piece.dims(0)) * sizeof(float);
    const bool is_last = piece.offset() + piece.size() == end;
    reply->add_outcomes()->set_verdict(is_last ? ACCEPTED : PENDING);
  }
}

// Answers with what a pull asks for, each piece the begin of `value`, which outlives the answer.
inline ReceivedTensors AnswerPull(const PullRequest& pull, std::span<const std::byte> value,
                                  PullReply* reply) {
  reply->set_version(pull.version());
  auto segments = std::make_shared<ReceivedTensors::Segments>();
  for (const PullPiece& piece : pull.pieces()) {
    *reply->add_pieces() = piece;
    segments->push_back(value.first(piece.size()));
  }
  return ReceivedTensors(std::shared_ptr<const ReceivedTensors::Segments>(std::move(segments)));
}

}  // namespace lockstep::test
