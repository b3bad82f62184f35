#include "common/base/running_clock.h"

namespace lockstep {

absl::Duration RunningClock::Monotonic() const {
  absl::MutexLock lock(&mutex_);
  const absl::Duration now = clock_->Monotonic();
  stood_still_ += standstill_.Measure(now);
  return now - stood_still_;
}

}  // namespace lockstep
