// HeapTrimPolicy decides when a ps returns freed heap memory to the kernel. Pure: times are
// arguments, of one monotonic clock.
#pragma once

#include "absl/time/time.h"
#include "ps/shard/calls.h"

namespace lockstep::ps {

// Activity of the two shards of a process.
struct PsActivity {
  ShardActivity own;
  ShardActivity copy;

  friend bool operator==(const PsActivity&, const PsActivity&) = default;
};

// For 256 MiB a trim holds the heap's locks for 20 ms. The messages after it take 120 ms more,
// because the kernel maps their pages again. Without variables there are no steps to delay. With
// variables a trim is due after 15 s without activity, so the memory of each burst of calls is
// returned. A job with longer steps would pay for a trim in each step. So the interval between two
// trims is 15 s at first, and doubles each time, up to 1 h.
//
// One trim is outside this policy: a server trims after its ConnectionGuard has closed connections,
// also while its job trains (common/rpc/connection_guard.h). Thread-compatible.
class HeapTrimPolicy {
 public:
  // The last calls of an epoch hold the dropped memory until they return.
  static constexpr absl::Duration kPauseWithoutVariables = absl::Seconds(1);
  // With variables the job may continue at any time.
  static constexpr absl::Duration kPause = absl::Seconds(15);
  static constexpr absl::Duration kFirstInterval = absl::Seconds(15);
  static constexpr absl::Duration kLongestInterval = absl::Hours(1);

  // Call it a few times a second. True at most once in each pause without activity.
  bool IsDue(const PsActivity& activity, absl::Duration now);

 private:
  PsActivity last_;
  absl::Duration quiet_since_ = -absl::InfiniteDuration();
  absl::Duration last_trim_ = -absl::InfiniteDuration();
  absl::Duration interval_ = kFirstInterval;  // to the next trim with variables
  bool is_trimmed_ = true;  // since the last activity; nothing has been freed at the start
};

}  // namespace lockstep::ps
