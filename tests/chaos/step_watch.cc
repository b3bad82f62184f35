#include "tests/chaos/step_watch.h"

#include <algorithm>

namespace lockstep::test {

void StepWatch::Begin(absl::Duration now) {
  last_ = now;
  longest_ = absl::ZeroDuration();
  num_advances_ = 0;
}

void StepWatch::OnAnswer(absl::Duration now, int ps, int64_t closed_steps) {
  const auto [known, is_new] = closed_.emplace(ps, closed_steps);
  const bool advances = !is_new && closed_steps > known->second;
  known->second = closed_steps;
  if (!advances) return;
  longest_ = std::max(longest_, now - last_);
  last_ = now;
  ++num_advances_;
}

absl::Duration StepWatch::LongestPause(absl::Duration now) const {
  return std::max(longest_, now - last_);
}

}  // namespace lockstep::test
