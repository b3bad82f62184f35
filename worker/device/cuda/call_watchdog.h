// Tells of a library's call that does not return.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/monotonic_wait.h"
#include "common/base/running_clock.h"

namespace lockstep::worker::cuda {

// Watches one call at a time, by a thread of its own. Watching allocates nothing.
class CallWatchdog {
 public:
  struct LateCall {
    std::string name;
    absl::Duration limit;
  };

  // `on_late` is told once of each call that is still under way after its limit, on the watchdog's
  // thread, up to a look later. Time in which this process stood still does not count.
  explicit CallWatchdog(std::function<void(const LateCall&)> on_late);
  // After the last call. Blocks for `on_late`.
  ~CallWatchdog();

  // Around a call. `name` outlives it: "ncclGroupEnd".
  class Watch {
   public:
    Watch(CallWatchdog* watchdog, const char* name, absl::Duration limit);
    ~Watch();
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

   private:
    CallWatchdog* const watchdog_;
  };

 private:
  void Run();
  // Blocks until there is one; nullopt: the watchdog ends.
  std::optional<LateCall> NextLate();

  const std::function<void(const LateCall&)> on_late_;
  const RunningClock clock_{Clock::Real()};
  absl::Mutex mutex_;
  MonotonicCondVar changed_;  // that it ends
  bool ends_ ABSL_GUARDED_BY(mutex_) = false;
  const char* call_ ABSL_GUARDED_BY(mutex_) = nullptr;  // null: none, or one that was told of
  absl::Duration limit_ ABSL_GUARDED_BY(mutex_);
  absl::Duration deadline_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;  // last: uses all above
};

}  // namespace lockstep::worker::cuda
