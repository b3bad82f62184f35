// A network that delays every message at random, so that calls overtake each other, and loses some.
#pragma once

#include <cstdint>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/callback.h"
#include "tests/sim/event_queue.h"
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
};

class Network {
 public:
  // Both outlive the network.
  Network(const NetworkOptions& options, EventQueue* events, Random* random)
      : options_(options), events_(events), random_(random) {}

  // A call from one end of `link` to the other. `serve` takes the callback that it answers through,
  // now or later.
  template <typename Reply>
  void Call(const Link& link, absl::AnyInvocable<void(Callback<Reply>)> serve,
            Callback<Reply> done) {
    if (random_->Chance(options_.loss)) {
      const bool is_late = random_->Chance(options_.late);
      events_->trace().NoteFault(is_late ? Fault::kLateRequest : Fault::kLostRequest);
      if (is_late) ArriveLate<Reply>(link, std::move(serve));
      return Fail<Reply>(link, std::move(done));
    }
    events_->Plan(
        Delay(), EventKind::kRequest, link,
        [this, link, serve = std::move(serve), done = std::move(done)]() mutable {
          serve([this, link, done = std::move(done)](absl::StatusOr<Reply> reply) mutable {
            if (random_->Chance(options_.loss)) {
              events_->trace().NoteFault(Fault::kLostReply);
              return Fail<Reply>(link, std::move(done));
            }
            events_->Plan(Delay(), EventKind::kReply, link.Reversed(),
                          [done = std::move(done), reply = std::move(reply)]() mutable {
                            done(std::move(reply));
                          });
          });
        });
  }

 private:
  absl::Duration Delay() { return random_->Between(options_.least_delay, options_.most_delay); }

  template <typename Reply>
  void ArriveLate(const Link& link, absl::AnyInvocable<void(Callback<Reply>)> serve) {
    events_->Plan(random_->Between(absl::ZeroDuration(), options_.most_lateness),
                  EventKind::kRequest, link, [this, serve = std::move(serve)]() mutable {
                    serve([this](const absl::StatusOr<Reply>&) { ++unheard_replies_; });
                  });
  }

  template <typename Reply>
  void Fail(const Link& link, Callback<Reply> done) {
    events_->Plan(Delay(), EventKind::kFailure, link.Reversed(),
                  [done = std::move(done)]() mutable {
                    done(absl::UnavailableError("the network lost a message"));
                  });
  }

  const NetworkOptions options_;
  EventQueue* const events_;
  Random* const random_;
  int64_t unheard_replies_ = 0;
};

}  // namespace lockstep::sim
