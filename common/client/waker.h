// Calls a function at a time.
#pragma once

#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/monotonic_wait.h"

namespace lockstep {

// Thread-safe. Its thread starts when it is first needed. Destruction waits for a call that is
// under way.
class Waker {
 public:
  explicit Waker(std::function<void()> wake) : wake_(std::move(wake)) {}
  ~Waker();

  // Calls `wake` in `delay` from now, or earlier where an earlier call asked for that.
  void WakeIn(absl::Duration delay);

 private:
  void Run();

  const std::function<void()> wake_;
  absl::Mutex mutex_;
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Duration next_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteDuration();  // on the clock
  MonotonicCondVar changed_;
  std::thread thread_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep
