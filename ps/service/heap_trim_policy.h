// When a ps gives what its heap has freed back to the kernel. Pure: times are arguments, of one
// monotonic clock.
#pragma once

#include "absl/time/time.h"
#include "ps/shard/calls.h"

namespace lockstep::ps {

// Of the two shards of a process.
struct PsActivity {
  ShardActivity own;
  ShardActivity copy;

  friend bool operator==(const PsActivity&, const PsActivity&) = default;
};

// For 256 MiB a trim holds the heap's locks for 20 ms, and the messages after it take 120 ms more,
// because the kernel maps their pages again. Without variables there are no steps. With them it
// trims when nothing has changed for 15 s, so that each burst of calls is given back. A job of
// longer steps would pay for a trim in each: between two of them are 15 s at first, and twice as
// long each time, up to 1 h.
//
// One exception is not of this policy: a server trims after it has closed connections of strangers,
// also while its job trains (common/rpc/connection_guard.h). Thread-compatible.
class HeapTrimPolicy {
 public:
  // The last calls of an epoch keep what was dropped until they return.
  static constexpr absl::Duration kPauseWithoutVariables = absl::Seconds(1);
  // With variables the job may go on at any time.
  static constexpr absl::Duration kPause = absl::Seconds(15);
  static constexpr absl::Duration kFirstInterval = absl::Seconds(15);
  static constexpr absl::Duration kLongestInterval = absl::Hours(1);

  // To be asked a few times a second. True at most once in each pause without activity.
  bool IsDue(const PsActivity& activity, absl::Duration now);

 private:
  PsActivity last_;
  absl::Duration quiet_since_ = -absl::InfiniteDuration();
  absl::Duration last_trim_ = -absl::InfiniteDuration();
  absl::Duration interval_ = kFirstInterval;  // to the next trim with variables
  bool is_trimmed_ = true;  // since the last activity; nothing has been freed at the start
};

}  // namespace lockstep::ps
