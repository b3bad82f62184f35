#include "tests/sim/remote_ps.h"

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/transport/ps_methods.h"

namespace lockstep::sim {
namespace {

using Message = google::protobuf::MessageLite;

class RemoteControl final : public PsControl {
 public:
  RemoteControl(PsControl* ps, const Link& link, Network* network)
      : ps_(ps), link_(link), network_(network) {}

  void Start(const MethodInfo& method, const Message& request, Message* reply,
             StatusCallback done) override {
    using Packet = std::shared_ptr<Message>;
    const Packet sent(request.New());
    sent->CheckTypeAndMergeFrom(request);
    const Packet empty(reply->New());
    network_->Call<Packet>(
        link_, method.deadline,
        [ps = ps_, method, sent, empty](Callback<Packet> answer) {
          const Packet answered(empty->New());
          ps->Start(method, *sent, answered.get(),
                    [sent, answered, answer = std::move(answer)](absl::Status status) mutable {
                      if (!status.ok()) return answer(std::move(status));
                      answer(answered);
                    });
        },
        [reply, done = std::move(done)](const absl::StatusOr<Packet>& received) mutable {
          if (received.ok()) reply->CheckTypeAndMergeFrom(**received);
          done(received.status());
        });
  }

 private:
  PsControl* const ps_;
  const Link link_;
  Network* const network_;
};

class RemoteData final : public PsData {
 public:
  RemoteData(PsData* ps, const Link& link, Network* network)
      : ps_(ps), link_(link), network_(network) {}
  ~RemoteData() override { RemoteData::Cancel(); }

  void Push(const PushRequest& header, std::vector<std::span<const std::byte>> payload,
            Callback<PushReply> done) override {
    Send(&PsData::Push, kPush.deadline, header, payload, std::move(done));
  }
  void PushPull(const PushRequest& header, std::vector<std::span<const std::byte>> payload,
                Callback<PushPullReply> done) override {
    Send(&PsData::PushPull, kPushAndFetch.deadline, header, payload, std::move(done));
  }
  void Pull(const PullRequest& request, Callback<std::unique_ptr<PulledValues>> done) override {
    network_->Call<std::unique_ptr<PulledValues>>(
        link_, kPull.deadline,
        [ps = ps_, request](Callback<std::unique_ptr<PulledValues>> answer) {
          ps->Pull(request, std::move(answer));
        },
        InFlight(std::move(done)));
  }
  void DequeueToken(const DequeueTokenRequest& request, Callback<DequeueTokenReply> done) override {
    network_->Call<DequeueTokenReply>(
        link_, kDequeueToken.deadline,
        [ps = ps_, request](Callback<DequeueTokenReply> answer) {
          ps->DequeueToken(request, std::move(answer));
        },
        InFlight(std::move(done)));
  }
  void StoreVersion(const StoreVersionRequest& header,
                    std::vector<std::span<const std::byte>> payload,
                    Callback<StoreVersionReply> done) override {
    Send(&PsData::StoreVersion, kStoreVersion.deadline, header, payload, std::move(done));
  }
  void PutState(const PutStateRequest& header, std::vector<std::span<const std::byte>> payload,
                Callback<PutStateReply> done) override {
    Send(&PsData::PutState, kPutState.deadline, header, payload, std::move(done));
  }
  void Cancel() override {
    for (const auto& [number, cancel] : std::exchange(in_flight_, {})) cancel();
  }

 private:
  // `done` for an answer, or CANCELLED before that. An answer that comes later is nobody's.
  template <typename Reply>
  Callback<Reply> InFlight(Callback<Reply> done) {
    auto kept = std::make_shared<Callback<Reply>>(std::move(done));
    in_flight_[++calls_] = [kept] {
      std::exchange(*kept, nullptr)(absl::CancelledError("calls were cancelled"));
    };
    return [this, kept, number = calls_](absl::StatusOr<Reply> reply) {
      if (*kept == nullptr) return;
      in_flight_.erase(number);
      std::exchange(*kept, nullptr)(std::move(reply));
    };
  }

  template <typename Request, typename Reply>
  void Send(void (PsData::*method)(const Request&, std::vector<std::span<const std::byte>>,
                                   Callback<Reply>),
            absl::Duration deadline, const Request& header,
            const std::vector<std::span<const std::byte>>& payload, Callback<Reply> done) {
    // The sender may die while its bytes are on their way.
    auto bytes = std::make_shared<std::vector<std::byte>>();
    for (const auto& part : payload) bytes->insert(bytes->end(), part.begin(), part.end());
    network_->Call<Reply>(
        link_, deadline,
        [ps = ps_, method, header, bytes](Callback<Reply> answer) {
          (ps->*method)(header, {std::span(*bytes)},
                        [bytes, answer = std::move(answer)](absl::StatusOr<Reply> reply) mutable {
                          answer(std::move(reply));
                        });
        },
        InFlight(std::move(done)));
  }

  PsData* const ps_;
  const Link link_;
  Network* const network_;
  uint64_t calls_ = 0;
  std::map<uint64_t, std::function<void()>> in_flight_;
};

}  // namespace

std::unique_ptr<PsControl> MakeRemoteControl(PsControl* ps, const Link& link, Network* network) {
  return std::make_unique<RemoteControl>(ps, link, network);
}

std::unique_ptr<PsData> MakeRemoteData(PsData* ps, const Link& link, Network* network) {
  return std::make_unique<RemoteData>(ps, link, network);
}

}  // namespace lockstep::sim
