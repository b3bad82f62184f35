// Waits with a time limit on the monotonic clock. abseil's timed waits use the time of day: while
// that is set back by an hour, a wait of 100 ms takes an hour.
#pragma once

#include <atomic>
#include <condition_variable>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace lockstep {

// A condition variable of one absl::Mutex. Unlike with Mutex::Await a change of the condition does
// not wake by itself: who makes it calls Signal or SignalAll, with the mutex held where the waiter
// may destroy this object once it has woken.
class MonotonicCondVar {
 public:
  void Signal() { changed_.notify_one(); }
  void SignalAll() { changed_.notify_all(); }

  // Releases the mutex until a signal or until Clock::Real()->Monotonic() is `deadline`; may return
  // earlier. The mutex is held again afterwards.
  void WaitUntil(absl::Mutex* mutex, absl::Duration deadline) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // Returns when `condition` holds or `timeout` is over, and whether it holds.
  bool AwaitFor(absl::Mutex* mutex, const absl::Condition& condition, absl::Duration timeout)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);

 private:
  std::condition_variable_any changed_;
};

// absl::Notification with such a wait. Thread-safe. A waiter may destroy it as soon as it has
// returned.
class MonotonicNotification {
 public:
  MonotonicNotification() = default;
  ~MonotonicNotification();
  MonotonicNotification(const MonotonicNotification&) = delete;
  MonotonicNotification& operator=(const MonotonicNotification&) = delete;

  // Once.
  void Notify();
  bool HasBeenNotified() const { return notified_.load(std::memory_order_acquire); }
  void WaitForNotification() const;
  // False when `timeout` was over first.
  bool WaitFor(absl::Duration timeout) const;

 private:
  mutable absl::Mutex mutex_;
  mutable MonotonicCondVar changed_;
  std::atomic<bool> notified_ = false;  // written with mutex_ held
};

}  // namespace lockstep
