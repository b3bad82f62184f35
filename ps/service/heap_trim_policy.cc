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
  if (!has_variables) interval_ = kFirstInterval;
  const absl::Duration pause = has_variables ? kPause : kPauseWithoutVariables;
  if (is_trimmed_ || now - quiet_since_ < pause) return false;
  if (has_variables) {
    if (now - last_trim_ < interval_) return false;
    interval_ = std::min(2 * interval_, kLongestInterval);
  }
  is_trimmed_ = true;
  last_trim_ = now;
  return true;
}

}  // namespace lockstep::ps
