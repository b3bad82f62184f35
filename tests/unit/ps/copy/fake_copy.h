// The copy of a shard as its primary sees it: calls wait until the test says what becomes of them.
#pragma once

#include <catch2/catch.hpp>
#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/timer.h"
#include "common/transport/tensor_transport.h"
#include "tests/support/manual_time.h"

namespace lockstep::test {

// Of one thread. A call that has ended stays in `calls`.
class FakeCopy final : public TensorTransport {
 public:
  struct Call {
    PushRequest header;
    std::vector<OutgoingTensor> tensors;
    PushReply* reply;  // null: the call has ended
    Callback<ReceivedTensors> done;
  };

  void Open(const WorkerIdentity&, Callback<TransportInfo> done) override {
    ++num_opened;
    done(TransportInfo{is_shared ? absl::OkStatus() : absl::UnavailableError("not on one host")});
  }
  std::string peer() const override { return "the copy"; }
  bool MayRound() const override { return false; }
  bool SendsByReference(std::span<const std::byte>) const override { return is_shared; }
  bool ReceivesByReference() const override { return false; }
  void Cancel() override {
    is_cancelled = true;
    for (size_t i = 0; i < calls.size(); ++i) {
      if (calls[i].reply != nullptr) Fail(i, absl::CancelledError("cancelled"));
    }
  }
  void Start(const CallOptions&, google::protobuf::Message* header,
             const std::vector<OutgoingTensor>& tensors, google::protobuf::Message* reply,
             Callback<ReceivedTensors> done) override {
    if (is_cancelled) return done(absl::CancelledError("cancelled"));
    calls.push_back({dynamic_cast<PushRequest&>(*header), tensors, dynamic_cast<PushReply*>(reply),
                     std::move(done)});
  }

  // Answers every piece of a call alike.
  void Answer(size_t call, Verdict verdict, int64_t shard_step) {
    PushReply* const reply = std::exchange(calls.at(call).reply, nullptr);
    REQUIRE(reply != nullptr);
    reply->set_shard_step(shard_step);
    for (const PushPiece& piece : calls[call].header.pieces()) {
      PushReply::Outcome* const outcome = reply->add_outcomes();
      outcome->set_variable(piece.variable());
      outcome->set_verdict(verdict);
    }
    std::exchange(calls[call].done, nullptr)(ReceivedTensors());
  }
  void Fail(size_t call, const absl::Status& status) {
    REQUIRE(std::exchange(calls.at(call).reply, nullptr) != nullptr);
    std::exchange(calls[call].done, nullptr)(status);
  }

  std::deque<Call> calls;
  bool is_shared = false;
  bool is_cancelled = false;
  int num_opened = 0;
};

}  // namespace lockstep::test
