// A network that delays every message at random, so that calls overtake each other, and loses some.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tests/sim/event_queue.h"
#include "tests/sim/random.h"

namespace lockstep::sim {

struct NetworkOptions {
  absl::Duration least_delay = absl::Microseconds(50);
  absl::Duration most_delay = absl::Milliseconds(2);
  // Of a request, and again of its reply. The caller learns UNAVAILABLE either way and cannot tell
  // which.
  double loss = 0;
};

class Network {
 public:
  // Both outlive the network.
  Network(const NetworkOptions& options, EventQueue* events, Random* random)
      : options_(options), events_(events), random_(random) {}

  // `serve` takes the callback that it answers through, now or later.
  template <typename Reply>
  void Call(std::function<void(std::function<void(absl::StatusOr<Reply>)>)> serve,
            std::function<void(absl::StatusOr<Reply>)> done) {
    if (random_->Chance(options_.loss)) return Fail<Reply>(std::move(done));
    events_->After(Delay(), [this, serve = std::move(serve), done = std::move(done)]() mutable {
      serve([this, done = std::move(done)](absl::StatusOr<Reply> reply) mutable {
        if (random_->Chance(options_.loss)) return Fail<Reply>(std::move(done));
        // A callback may be copied on its way, a reply with values may not.
        auto kept = std::make_shared<absl::StatusOr<Reply>>(std::move(reply));
        events_->After(Delay(), [done = std::move(done), kept] { done(std::move(*kept)); });
      });
    });
  }

 private:
  absl::Duration Delay() { return random_->Between(options_.least_delay, options_.most_delay); }

  template <typename Reply>
  void Fail(std::function<void(absl::StatusOr<Reply>)> done) {
    events_->After(Delay(), [done = std::move(done)] {
      done(absl::UnavailableError("the network lost a message"));
    });
  }

  const NetworkOptions options_;
  EventQueue* const events_;
  Random* const random_;
};

}  // namespace lockstep::sim
