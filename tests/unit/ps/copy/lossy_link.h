// The way from a primary to its copy: calls wait until the test says what becomes of them. They are
// delivered, their answers are lost, or they get lost themselves; and copies of them may arrive at
// any later time.
#pragma once

#include <algorithm>
#include <deque>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "common/base/check.h"
#include "common/transport/tensor_transport.h"
#include "ps/service/convert.h"
#include "ps/shard/shard.h"
#include "tests/support/bytes_transport.h"

namespace lockstep::ps::test {

// Not thread-safe. Outlives its transports.
class LossyLink {
 public:
  // `fault`: the probability that a call meets one.
  LossyLink(uint32_t seed, double fault) : random_(seed), fault_(fault) {}

  // Null: nobody is there. What is late does not reach another copy, which has another address.
  void Connect(Shard* copy) {
    copy_ = copy;
    std::erase_if(calls_, [](const PendingCall& call) { return call.done == nullptr; });
  }
  std::unique_ptr<TensorTransport> MakeTransport() { return std::make_unique<Transport>(this); }

  // Something happens to one of the calls. False: there is none.
  bool Act() {
    if (calls_.empty()) return false;
    const size_t chosen = Draw(std::min<size_t>(calls_.size(), 4));
    PendingCall call = std::move(calls_[chosen]);
    calls_.erase(calls_.begin() + static_cast<int64_t>(chosen));
    if (call.done == nullptr) {
      Deliver(call).IgnoreError();
      return true;
    }
    const bool meets_fault = Chance(fault_);
    const bool is_lost = meets_fault && Chance(0.5);
    if (Chance(fault_)) calls_.push_back(CopyOf(call));
    absl::Status status = absl::UnavailableError("lost");
    if (!is_lost) status = Deliver(call);
    if (meets_fault) status = absl::UnavailableError("lost");
    Finish(&call, status);
    return true;
  }

 private:
  struct PendingCall {
    std::string path;
    std::shared_ptr<google::protobuf::Message> header;
    std::shared_ptr<std::vector<std::byte>> payload;
    google::protobuf::Message* reply = nullptr;
    Callback<ReceivedTensors> done = nullptr;  // null: nobody waits for it
  };

  class Transport final : public lockstep::test::BytesTransport {
   public:
    explicit Transport(LossyLink* link) : link_(link) {}
    ~Transport() override { Transport::Cancel(); }

    bool MayRound() const override { return false; }
    void Cancel() override {
      is_cancelled_ = true;
      std::deque<PendingCall> calls = std::exchange(link_->calls_, {});
      // A late copy of each may come yet.
      for (const PendingCall& call : calls) link_->calls_.push_back(CopyOf(call));
      for (PendingCall& call : calls) {
        if (call.done) call.done(absl::CancelledError("cancelled"));
      }
    }
    void Start(const CallOptions& options, google::protobuf::Message* header,
               const std::vector<OutgoingTensor>& tensors, google::protobuf::Message* reply,
               Callback<ReceivedTensors> done) override {
      if (is_cancelled_) return done(absl::CancelledError("cancelled"));
      std::vector<std::span<const std::byte>> spans;
      for (const OutgoingTensor& tensor : tensors) AppendBytes(tensor, &spans);
      auto payload = std::make_shared<std::vector<std::byte>>();
      for (const auto& span : spans) payload->insert(payload->end(), span.begin(), span.end());
      const std::shared_ptr<google::protobuf::Message> own(header->New());
      own->CopyFrom(*header);
      link_->calls_.push_back(
          {std::string(options.path), own, std::move(payload), reply, std::move(done)});
    }

   private:
    LossyLink* const link_;
    bool is_cancelled_ = false;
  };

  static PendingCall CopyOf(const PendingCall& call) {
    return {call.path, call.header, call.payload};
  }

  static void Finish(PendingCall* call, const absl::Status& status) {
    if (!status.ok()) return call->done(status);
    call->done(ReceivedTensors());
  }

  absl::Status Deliver(const PendingCall& call) {
    if (copy_ == nullptr) return absl::UnavailableError("nobody is there");
    const ReceivedTensors tensors(ReceivedTensors::Segments{*call.payload});
    if (absl::EndsWith(call.path, "/PutState")) {
      StateArguments arguments = FromProto(static_cast<const PutStateRequest&>(*call.header));
      arguments.tensors = tensors;
      return copy_->PutState(arguments).status();
    }
    LOCKSTEP_CHECK(absl::EndsWith(call.path, "/Push"));
    const auto& request = static_cast<const PushRequest&>(*call.header);
    absl::StatusOr<PushArguments> arguments = FromProto(request);
    LOCKSTEP_CHECK(arguments.ok());
    arguments->tensors = tensors;
    absl::StatusOr<PushResult> pushed = copy_->Push(*arguments);
    if (!pushed.ok()) return pushed.status();
    if (call.done == nullptr) return absl::OkStatus();
    auto* const reply = static_cast<PushReply*>(call.reply);
    BeginReply(request, reply);
    ToProto({.push = *std::move(pushed)}, reply);
    return absl::OkStatus();
  }

  size_t Draw(size_t below) { return std::uniform_int_distribution<size_t>(0, below - 1)(random_); }
  bool Chance(double probability) {
    return std::uniform_real_distribution<double>(0, 1)(random_) < probability;
  }

  std::mt19937 random_;
  const double fault_;
  Shard* copy_ = nullptr;
  std::deque<PendingCall> calls_;
};

}  // namespace lockstep::ps::test
