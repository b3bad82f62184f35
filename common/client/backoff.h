// How long to leave a ps alone that refuses or cannot be reached, and when to give it up. Pure.
#pragma once

#include <optional>

#include "absl/time/time.h"

namespace lockstep {

class Backoff {
 public:
  explicit Backoff(absl::Duration patience) : patience_(patience) {}

  // The ps did its part: no pause, and patience starts anew, with the next failure: a call may have
  // been parked for long before that.
  void Succeeded(absl::Duration now);
  // It answered, but could not: a longer pause. Patience starts anew.
  void Refused(absl::Duration now);
  // It did not answer. False when that has gone on for longer than the patience.
  [[nodiscard]] bool Failed(absl::Duration now);

  // Nothing should be sent before.
  absl::Duration not_before() const { return not_before_; }

 private:
  void Pause(absl::Duration now);

  absl::Duration patience_;
  std::optional<absl::Duration> failing_since_;
  absl::Duration pause_;
  absl::Duration not_before_ = -absl::InfiniteDuration();
};

}  // namespace lockstep
