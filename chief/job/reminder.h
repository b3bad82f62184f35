// Reminder decides when to report again that something is still awaited. Pure.
#pragma once

#include "absl/time/time.h"

namespace lockstep::chief {

// A step, an evaluation or a save that takes longer than this is reported.
inline constexpr absl::Duration kStallReminder = absl::Seconds(10);

class Reminder {
 public:
  // Due when `every` has passed without progress, and again after each further `every`.
  Reminder(absl::Duration every, absl::Duration now) : every_(every) { Progress(now); }

  void Progress(absl::Duration now) {
    last_progress_ = now;
    next_ = now + every_;
  }
  // At most once per interval.
  bool Due(absl::Duration now) {
    if (now < next_) return false;
    next_ = now + every_;
    return true;
  }
  absl::Duration Silence(absl::Duration now) const { return now - last_progress_; }
  bool IsSilent(absl::Duration now) const { return Silence(now) >= every_; }

 private:
  const absl::Duration every_;
  absl::Duration last_progress_;
  absl::Duration next_;
};

}  // namespace lockstep::chief
