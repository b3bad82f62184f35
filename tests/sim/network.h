// A network that delays every message at random, so that calls overtake each other, and that loses,
// repeats and holds back some. Calls have deadlines, as those of gRPC.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/callback.h"
#include "common/rpc/limits.h"
#include "tests/sim/event_queue.h"
#include "tests/sim/node.h"
#include "tests/sim/random.h"

namespace lockstep::sim {

struct NetworkOptions {
  absl::Duration least_delay = absl::Microseconds(50);
  absl::Duration most_delay = absl::Milliseconds(2);
  // Of a request, and again of its reply. The caller learns UNAVAILABLE either way and cannot tell
  // which.
  double loss = 0;
  // Of lost requests: those that arrive all the same, this much later at most. Their replies are
  // nobody's.
  double late = 0;
  absl::Duration most_lateness = absl::Seconds(3);
  // Of requests: those that arrive a second time, as late. The second reply is nobody's.
  double duplicates = 0;
  // Of messages: those that take longer than the deadline of their call, as much longer. Not those
  // of calls that may read a disk: such a deadline is longer than anybody's patience.
  double stalls = 0;
};

// Within it a connection is given up over which nothing comes.
inline const absl::Duration kKeepalive = rpc::kKeepaliveInterval + rpc::kKeepaliveTimeout;

class Network {
 public:
  // May be called twice, for a request that arrives twice.
  template <typename Reply>
  using Serve = std::function<void(Callback<Reply>)>;

  // Both outlive the network.
  Network(const NetworkOptions& options, EventQueue* events, Random* random)
      : options_(options), events_(events), random_(random) {}

  // A call from one end of `link` to the other. `serve` takes the callback that it answers through,
  // now or later. After `deadline` the caller is told DEADLINE_EXCEEDED, the server nothing.
  template <typename Reply>
  void Call(const Link& link, absl::Duration deadline, Serve<Reply> serve, Callback<Reply> done);

  // From now on, for so long, messages of this direction are held up. Those that would be held for
  // longer than a keepalive takes are lost, and their calls then fail with UNAVAILABLE.
  void Cut(const Link& direction, absl::Duration length);

  // The connections of this process end: calls that wait there, or that it waits for, fail at their
  // callers with UNAVAILABLE. Requests that are on their way arrive all the same.
  void CloseConnections(const Node& node);

 private:
  // A call, of whatever type.
  class OpenCall {
   public:
    virtual ~OpenCall() = default;
    virtual bool is_open() const = 0;
    // Does nothing to one that is not open.
    virtual void Fail(EventQueue* events, const absl::Status& why) = 0;
  };
  using OpenCalls = std::vector<std::pair<Link, std::weak_ptr<OpenCall>>>;

  // A call until its caller is told.
  template <typename Reply>
  struct Pending final : OpenCall {
    void End(EventQueue* events, absl::StatusOr<Reply> reply) {
      if (done == nullptr) return;
      events->Cancel(expiry);
      std::exchange(done, nullptr)(std::move(reply));
    }
    bool is_open() const override { return done != nullptr; }
    void Fail(EventQueue* events, const absl::Status& why) override { End(events, why); }

    Callback<Reply> done;  // null: told
    absl::Duration deadline;
    EventQueue::Key expiry;
  };

  absl::Duration Delay() { return random_->Between(options_.least_delay, options_.most_delay); }
  bool Happens(double probability) { return probability > 0 && random_->Chance(probability); }
  // How long a message takes; nullopt: it is lost in a cut.
  std::optional<absl::Duration> Transit(const Link& direction, absl::Duration deadline);
  void NoteArrival(const Link& direction, uint64_t number);
  void NoteCall(const Link& link, const std::shared_ptr<OpenCall>& call);
  template <typename Reply>
  void Send(EventKind kind, const Link& direction, const std::shared_ptr<Pending<Reply>>& call,
            absl::AnyInvocable<void()> arrive);
  template <typename Reply>
  void ArriveLate(const Link& link, Serve<Reply> serve);
  template <typename Reply>
  void Fail(const Link& to_caller, absl::Duration delay,
            const std::shared_ptr<Pending<Reply>>& call);

  const NetworkOptions options_;
  EventQueue* const events_;
  Random* const random_;
  std::map<Link, absl::Duration> cut_until_;
  std::map<Link, uint64_t> sent_;          // messages, by direction
  std::map<Link, uint64_t> last_arrived_;  // the highest number
  OpenCalls calls_;                        // and some that have ended since
  size_t most_calls_ = 64;                 // before those are removed
  int64_t unheard_replies_ = 0;
};

template <typename Reply>
void Network::Call(const Link& link, absl::Duration deadline, Serve<Reply> serve,
                   Callback<Reply> done) {
  const auto call = std::make_shared<Pending<Reply>>();
  call->done = std::move(done);
  call->deadline = events_->Monotonic() + deadline;
  call->expiry = events_->Plan(deadline, EventKind::kFailure, link.Reversed(), [this, call] {
    call->End(events_, absl::DeadlineExceededError("no answer within the deadline"));
  });
  NoteCall(link, call);
  if (random_->Chance(options_.loss)) {
    const bool is_late = random_->Chance(options_.late);
    events_->trace().NoteFault(is_late ? Fault::kLateRequest : Fault::kLostRequest);
    if (is_late) ArriveLate<Reply>(link, std::move(serve));
    return Fail(link.Reversed(), Delay(), call);
  }
  if (Happens(options_.duplicates)) {
    events_->trace().NoteFault(Fault::kDuplicateRequest);
    ArriveLate<Reply>(link, serve);
  }
  Send(EventKind::kRequest, link, call, [this, link, call, serve = std::move(serve)] {
    serve([this, link, call](absl::StatusOr<Reply> reply) {
      if (random_->Chance(options_.loss)) {
        events_->trace().NoteFault(Fault::kLostReply);
        return Fail(link.Reversed(), Delay(), call);
      }
      Send(EventKind::kReply, link.Reversed(), call,
           [this, call, reply = std::move(reply)]() mutable {
             call->End(events_, std::move(reply));
           });
    });
  });
}

template <typename Reply>
void Network::Send(EventKind kind, const Link& direction,
                   const std::shared_ptr<Pending<Reply>>& call, absl::AnyInvocable<void()> arrive) {
  const std::optional<absl::Duration> transit = Transit(direction, call->deadline);
  if (!transit.has_value()) {
    const bool is_request = kind == EventKind::kRequest;
    return Fail(is_request ? direction.Reversed() : direction, kKeepalive, call);
  }
  events_->Plan(
      *transit, kind, direction,
      [this, direction, number = ++sent_[direction], arrive = std::move(arrive)]() mutable {
        NoteArrival(direction, number);
        arrive();
      });
}

template <typename Reply>
void Network::ArriveLate(const Link& link, Serve<Reply> serve) {
  events_->Plan(random_->Between(absl::ZeroDuration(), options_.most_lateness), EventKind::kRequest,
                link, [this, serve = std::move(serve)] {
                  serve([this](const absl::StatusOr<Reply>&) { ++unheard_replies_; });
                });
}

template <typename Reply>
void Network::Fail(const Link& to_caller, absl::Duration delay,
                   const std::shared_ptr<Pending<Reply>>& call) {
  events_->Plan(delay, EventKind::kFailure, to_caller, [this, call] {
    call->End(events_, absl::UnavailableError("the network lost a message"));
  });
}

}  // namespace lockstep::sim
