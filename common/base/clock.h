// Time comes in through a constructor, so that tests decide what time it is.
#pragma once

#include "absl/time/time.h"

namespace lockstep {

// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;

  // Time since an arbitrary start. Never goes back: use it for leases, deadlines and rates.
  virtual absl::Duration Monotonic() const = 0;
  // Time of day, for what people read.
  virtual absl::Time Wall() const = 0;

  // The machine's clock. Lives for ever.
  static const Clock* Real();
};

// A clock that moves when told. Thread-compatible: the test moves it while nobody reads.
class ManualClock final : public Clock {
 public:
  absl::Duration Monotonic() const override { return now_; }
  absl::Time Wall() const override { return absl::UnixEpoch() + now_; }
  void Advance(absl::Duration by) { now_ += by; }

 private:
  absl::Duration now_ = absl::ZeroDuration();
};

}  // namespace lockstep
