#include "tests/sim/sim_peer_connection.h"

#include <algorithm>
#include <vector>

namespace lockstep::sim {
namespace {

constexpr absl::Duration kSendDeadline = absl::Seconds(60);
constexpr absl::Duration kControlDeadline = absl::Seconds(5);

class Incoming final : public worker::SendCall {
 public:
  Incoming(SendRequest request, ReceivedTensors tensors, Callback<SendReply> answer)
      : request_(std::move(request)), tensors_(std::move(tensors)), answer_(std::move(answer)) {}

  const SendRequest& request() const override { return request_; }
  absl::StatusOr<ReceivedTensors> TakeTensors() override { return std::move(tensors_); }
  bool AcceptsReferences() const override { return false; }
  void OnCancelled(absl::AnyInvocable<void()>) override {}
  void Respond(absl::StatusOr<std::shared_ptr<SendReply>> reply, const std::vector<OutgoingTensor>&,
               std::shared_ptr<const void>) override {
    LOCKSTEP_CHECK(answer_ != nullptr);
    Callback<SendReply> answer = std::exchange(answer_, nullptr);
    if (!reply.ok()) return answer(reply.status());
    answer(**reply);
  }

 private:
  const SendRequest request_;
  ReceivedTensors tensors_;
  Callback<SendReply> answer_;
};

// Bytes in pieces, each at an odd address.
struct Pieces {
  std::vector<std::vector<std::byte>> memory;
  ReceivedTensors::Segments spans;
};

}  // namespace

void SimPeerConnection::Send(SendRequest header, std::span<const std::byte> elements,
                             StatusCallback done) {
  Call<SendReply>(
      kSendDeadline,
      [this, header = std::move(header), elements](Callback<SendReply> answer) {
        to_->service->OnSend(
            std::make_shared<Incoming>(header, Receive(elements), std::move(answer)));
      },
      [done = std::move(done)](const absl::StatusOr<SendReply>& reply) mutable {
        done(reply.status());
      });
}

void SimPeerConnection::Compare(CompareRequest own, StatusCallback done) {
  Call<CompareReply>(
      kControlDeadline,
      [this, own = std::move(own)](Callback<CompareReply> answer) {
        answer(to_->service->OnCompare(own));
      },
      [done = std::move(done)](const absl::StatusOr<CompareReply>& reply) mutable {
        done(reply.status());
      });
}

void SimPeerConnection::Probe(ProbeRequest request, Callback<ProbeReply> done) {
  Call<ProbeReply>(
      kControlDeadline,
      [this, request = std::move(request)](Callback<ProbeReply> answer) {
        answer(to_->service->OnProbe(request));
      },
      std::move(done));
}

void SimPeerConnection::ReadState(ReadStateRequest request, Callback<ReadStateReply> done) {
  Call<ReadStateReply>(
      kControlDeadline,
      [this, request = std::move(request)](Callback<ReadStateReply> answer) {
        answer(to_->service->OnReadState(request));
      },
      std::move(done));
}

void SimPeerConnection::Cancel() {
  is_cancelled_ = true;
  EndAll(absl::CancelledError("calls were cancelled"));
}

void SimPeerConnection::Break() { EndAll(absl::UnavailableError("Connection reset")); }

template <typename Reply>
void SimPeerConnection::Call(absl::Duration deadline, Network::Serve<Reply> serve,
                             Callback<Reply> done) {
  if (is_cancelled_) return done(absl::CancelledError("calls were cancelled"));
  const uint64_t call = calls_++;
  const auto waiting = std::make_shared<Callback<Reply>>(std::move(done));
  const auto end = [this, call, waiting](absl::StatusOr<Reply> reply) {
    in_flight_.erase(call);
    if (*waiting != nullptr) std::exchange(*waiting, nullptr)(std::move(reply));
  };
  in_flight_[call] = [waiting](absl::Status status) {
    if (*waiting != nullptr) std::exchange(*waiting, nullptr)(std::move(status));
  };
  if (from_->is_gone) {
    events_->After(deadline, [end] { end(absl::DeadlineExceededError("no answer")); });
    return;
  }
  network_->Call<Reply>(
      {from_->node, to_->node}, deadline,
      [this, waiting, serve = std::move(serve)](Callback<Reply> answer) {
        if (*waiting == nullptr || (to_->is_gone && to_->hangs)) return;
        if (to_->is_gone) return answer(absl::UnavailableError("Connection refused"));
        serve([this, answer = std::move(answer)](absl::StatusOr<Reply> reply) mutable {
          if (!to_->is_gone) answer(std::move(reply));
        });
      },
      end);
}

void SimPeerConnection::EndAll(const absl::Status& status) {
  auto in_flight = std::exchange(in_flight_, {});
  for (auto& [call, end] : in_flight) end(status);
}

ReceivedTensors SimPeerConnection::Receive(std::span<const std::byte> elements) {
  if (by_reference_) {
    return ReceivedTensors(
        std::make_shared<const ReceivedTensors::Segments>(ReceivedTensors::Segments{elements}));
  }
  const auto pieces = std::make_shared<Pieces>();
  while (!elements.empty()) {
    const size_t size = 1 + random_->Below(elements.size());
    std::vector<std::byte>& piece = pieces->memory.emplace_back(size + 1);
    std::ranges::copy(elements.first(size), piece.begin() + 1);
    pieces->spans.push_back(std::span<const std::byte>(piece).subspan(1));
    elements = elements.subspan(size);
  }
  return ReceivedTensors(std::shared_ptr<const ReceivedTensors::Segments>(pieces, &pieces->spans));
}

}  // namespace lockstep::sim
