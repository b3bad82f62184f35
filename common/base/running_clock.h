// A clock that does not count the time in which this process stood still: a silence that it
// measures is another process's.
#pragma once

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/base/clock.h"
#include "common/base/standstill_watch.h"

namespace lockstep {

// Thread-safe. Monotonic is called several times a second for as long as something is measured, by
// any thread.
class RunningClock final : public Clock {
 public:
  // `clock` outlives this.
  explicit RunningClock(const Clock* clock) : clock_(clock), standstill_(clock->Monotonic()) {}

  absl::Duration Monotonic() const override;
  absl::Time Wall() const override { return clock_->Wall(); }

 private:
  const Clock* const clock_;
  mutable absl::Mutex mutex_;
  mutable StandstillWatch standstill_ ABSL_GUARDED_BY(mutex_);
  mutable absl::Duration stood_still_ ABSL_GUARDED_BY(mutex_);  // so far
};

}  // namespace lockstep
