// Waits with a time limit on the monotonic clock. abseil's timed waits use the time of day: while
// that is set back by an hour, a wait of 100 ms takes an hour.
#pragma once

#include <atomic>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace lockstep {

// A condition variable of one absl::Mutex, on a futex. Unlike with Mutex::Await a change of the
// condition does not wake by itself: who makes it, with the mutex held, calls Signal or SignalAll
// then or later. Call it with the mutex held where the waiter may destroy this object once it has
// woken; otherwise without, so that the waiter finds the mutex free.
class MonotonicCondVar {
 public:
  MonotonicCondVar() = default;
  MonotonicCondVar(const MonotonicCondVar&) = delete;
  MonotonicCondVar& operator=(const MonotonicCondVar&) = delete;

  void Signal();
  void SignalAll();

  // Releases the mutex until a signal or until Clock::Real()->Monotonic() is `deadline`; may return
  // earlier. The mutex is held again afterwards.
  void WaitUntil(absl::Mutex* mutex, absl::Duration deadline) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // Returns when `condition` holds or `timeout` is over, and whether it holds.
  bool AwaitFor(absl::Mutex* mutex, const absl::Condition& condition, absl::Duration timeout)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);

 private:
  void Wake(int most);

  std::atomic<uint32_t> signals_ = 0;  // their number: what the futex compares
  std::atomic<int> waiters_ = 0;
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
