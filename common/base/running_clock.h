// RunningClock does not count the time in which this process stood still: it was stopped (SIGSTOP),
// or its virtual machine was. The process heard of nobody meanwhile, so that time is no silence of
// others, and no use of their patience.
#pragma once

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"

namespace lockstep {

// Thread-safe.
class RunningClock final : public Clock {
 public:
  // `clock` outlives this.
  explicit RunningClock(const Clock* clock) : clock_(clock), looked_at_(clock->Monotonic()) {}

  // Call it several times a second, on any thread, for as long as something is measured: a time of
  // more than a second since the call before is a standstill.
  absl::Duration Monotonic() const override;
  absl::Time Wall() const override { return clock_->Wall(); }

 private:
  const Clock* const clock_;
  mutable absl::Mutex mutex_;
  mutable absl::Duration looked_at_ ABSL_GUARDED_BY(mutex_);    // of `clock_`
  mutable absl::Duration stood_still_ ABSL_GUARDED_BY(mutex_);  // so far
};

}  // namespace lockstep
