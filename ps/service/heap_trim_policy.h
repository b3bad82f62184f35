// When a ps gives what its heap has freed back to the kernel. Pure: times are arguments, of one
// monotonic clock.
#pragma once

#include "absl/time/time.h"
#include "ps/shard/orders.h"

namespace lockstep::ps {

// Of the two shards of a process.
struct PsActivity {
  ShardActivity own;
  ShardActivity copy;

  friend bool operator==(const PsActivity&, const PsActivity&) = default;
};

// Never while workers may make a step: for 256 MiB a trim holds the heap's locks for 20 ms, and the
// messages after it take 120 ms more, because the kernel maps their pages again. Thread-compatible.
class HeapTrimPolicy {
 public:
  // Without variables there are no steps. The background needs a moment to free what was dropped.
  static constexpr absl::Duration kPauseWithoutVariables = absl::Seconds(1);
  // With variables the job may go on at any time. The pause doubles with each trim, so that a job
  // of long steps pays for a few of them only.
  static constexpr absl::Duration kFirstPause = absl::Seconds(15);
  static constexpr absl::Duration kLongestPause = absl::Hours(1);

  // To be asked a few times a second. True once in each pause without activity.
  bool IsDue(const PsActivity& activity, absl::Duration now);

 private:
  PsActivity last_;
  absl::Duration quiet_since_ = -absl::InfiniteDuration();
  absl::Duration pause_ = kFirstPause;
  bool is_trimmed_ = true;  // since the last activity; nothing has been freed at the start
};

}  // namespace lockstep::ps
