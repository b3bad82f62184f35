#include "common/base/running_clock.h"

#include <utility>

namespace lockstep {
namespace {

// Between two calls of a process that runs.
constexpr absl::Duration kLongestTick = absl::Seconds(1);

}  // namespace

absl::Duration RunningClock::Monotonic() const {
  absl::MutexLock lock(&mutex_);
  const absl::Duration now = clock_->Monotonic();
  const absl::Duration since = now - std::exchange(looked_at_, now);
  if (since > kLongestTick) stood_still_ += since;
  return now - stood_still_;
}

}  // namespace lockstep
