// When to make a call again. Pure: time is an argument.
#pragma once

#include <algorithm>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace lockstep::chief {

// Whether the same call can succeed later without anybody changing anything. CANCELLED is a process
// that is stopping, DEADLINE_EXCEEDED a parked call whose time is over.
inline bool IsTransient(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
         absl::IsResourceExhausted(status) || absl::IsCancelled(status);
}

class Retry {
 public:
  bool in_flight() const { return state_ == State::kInFlight; }
  bool is_idle() const { return state_ == State::kIdle; }
  bool IsDue(absl::Duration now) const { return state_ == State::kWaiting && now >= due_; }

  void Sent() { state_ = State::kInFlight; }
  void Succeeded() {
    state_ = State::kIdle;
    pause_ = kFirstPause;
  }
  // A parked call that ended by its deadline is due at once; any other after a growing pause.
  void Failed(const absl::Status& error, absl::Duration now) {
    state_ = State::kWaiting;
    due_ = now;
    if (absl::IsDeadlineExceeded(error)) return;
    due_ += pause_;
    pause_ = std::min(pause_ * 2, kLongestPause);
  }

 private:
  enum class State { kIdle, kInFlight, kWaiting };
  static constexpr absl::Duration kFirstPause = absl::Milliseconds(100);
  static constexpr absl::Duration kLongestPause = absl::Seconds(2);

  State state_ = State::kIdle;
  absl::Duration due_;
  absl::Duration pause_ = kFirstPause;
};

}  // namespace lockstep::chief
