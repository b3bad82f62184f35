#include "common/client/backoff.h"

#include <algorithm>

namespace lockstep {
namespace {

constexpr absl::Duration kFirstPause = absl::Milliseconds(20);
constexpr absl::Duration kLongestPause = absl::Seconds(1);

}  // namespace

void Backoff::Succeeded(absl::Duration now) {
  failing_since_.reset();
  pause_ = absl::ZeroDuration();
  not_before_ = now;
}

void Backoff::Refused(absl::Duration now) {
  failing_since_.reset();
  Pause(now);
}

bool Backoff::Failed(absl::Duration now) {
  Pause(now);
  if (!failing_since_.has_value()) failing_since_ = now;
  return now - *failing_since_ <= patience_;
}

// Calls that were in flight together fail together: that is one failure.
void Backoff::Pause(absl::Duration now) {
  if (now < not_before_) return;
  pause_ = std::clamp(2 * pause_, kFirstPause, kLongestPause);
  not_before_ = now + pause_;
}

}  // namespace lockstep
