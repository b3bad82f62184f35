// Calls a function later. Time comes in through a constructor, as Clock does.
#pragma once

#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"

namespace lockstep {

// Thread-safe.
class Timer {
 public:
  virtual ~Timer() = default;
  // Calls `callback` once, `delay` from now, on a thread of the timer's. It must not block there.
  // Callbacks that are not due when the timer is destroyed are destroyed without a call.
  virtual void After(absl::Duration delay, absl::AnyInvocable<void()> callback) = 0;
};

}  // namespace lockstep
