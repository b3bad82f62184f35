#include "ps/service/heap_trim_policy.h"

#include <algorithm>

namespace lockstep::ps {

bool HeapTrimPolicy::IsDue(const PsActivity& activity, absl::Duration now) {
  if (activity != last_) {
    last_ = activity;
    quiet_since_ = now;
    is_trimmed_ = false;
  }
  const bool has_variables = activity.own.has_variables || activity.copy.has_variables;
  if (!has_variables) pause_ = kFirstPause;
  const absl::Duration pause = has_variables ? pause_ : kPauseWithoutVariables;
  if (is_trimmed_ || now - quiet_since_ < pause) return false;
  is_trimmed_ = true;
  if (has_variables) pause_ = std::min(2 * pause_, kLongestPause);
  return true;
}

}  // namespace lockstep::ps
