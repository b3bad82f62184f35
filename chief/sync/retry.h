// One call of the chief's to a peer, made until it succeeds. Pure: time is an argument.
#pragma once

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/retry_policy.h"

namespace lockstep::chief {

// Of the chief's calls: common/base/retry_policy.h.
inline bool IsTransient(const absl::Status& status) {
  return IsRetryable(status, CallKind::kCommand);
}

class Retry {
 public:
  bool in_flight() const { return state_ == State::kInFlight; }
  bool is_idle() const { return state_ == State::kIdle; }
  bool is_pausing() const { return state_ == State::kWaiting; }
  bool IsDue(absl::Duration now) const { return state_ == State::kWaiting && now >= due_; }

  void Sent() { state_ = State::kInFlight; }
  void Succeeded() {
    state_ = State::kIdle;
    policy_.OnSuccess();
  }
  // A parked call that ended by its deadline is due at once; any other after a growing pause.
  void Failed(const absl::Status& error, absl::Duration now) {
    state_ = State::kWaiting;
    due_ = now + policy_.OnFailure(error, now).value_or(absl::ZeroDuration());
  }

 private:
  enum class State { kIdle, kInFlight, kWaiting };
  State state_ = State::kIdle;
  absl::Duration due_;
  RetryPolicy policy_{CallKind::kCommand,
                      {.first_pause = absl::Milliseconds(100), .longest_pause = absl::Seconds(2)}};
};

}  // namespace lockstep::chief
