// StandstillWatch measures how long this process stood still: it was stopped (SIGSTOP), or its
// virtual machine was. It heard of nobody meanwhile, so that time is no silence of others. Pure.
#pragma once

#include "absl/time/time.h"

namespace lockstep {

// Thread-compatible. Times are of one monotonic clock.
class StandstillWatch {
 public:
  explicit StandstillWatch(absl::Duration now) : looked_at_(now) {}

  // Call it several times a second. Returns the time since the last call where that is more than a
  // second: the process stood still. Zero otherwise.
  absl::Duration Measure(absl::Duration now);

 private:
  absl::Duration looked_at_;
};

}  // namespace lockstep
