#include "common/base/monotonic_wait.h"

#include <algorithm>
#include <chrono>

#include "common/base/check.h"
#include "common/base/clock.h"

namespace lockstep {
namespace {

// The longest single wait: what is longer is waited for in pieces, so that no sum overflows.
constexpr absl::Duration kLongest = absl::Hours(24);

// What std::condition_variable_any unlocks and locks.
class Lockable {
 public:
  explicit Lockable(absl::Mutex* mutex) : mutex_(mutex) {}
  void lock() ABSL_NO_THREAD_SAFETY_ANALYSIS { mutex_->Lock(); }
  void unlock() ABSL_NO_THREAD_SAFETY_ANALYSIS { mutex_->Unlock(); }

 private:
  absl::Mutex* const mutex_;
};

}  // namespace

void MonotonicCondVar::WaitUntil(absl::Mutex* mutex, absl::Duration deadline) {
  Lockable lock(mutex);
  const absl::Duration timeout = std::min(deadline - Clock::Real()->Monotonic(), kLongest);
  if (timeout <= absl::ZeroDuration()) return;
  changed_.wait_until(lock, std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(timeout));
}

bool MonotonicCondVar::AwaitFor(absl::Mutex* mutex, const absl::Condition& condition,
                                absl::Duration timeout) {
  const absl::Duration deadline = Clock::Real()->Monotonic() + timeout;
  while (!condition.Eval()) {
    if (Clock::Real()->Monotonic() >= deadline) return false;
    WaitUntil(mutex, deadline);
  }
  return true;
}

MonotonicNotification::~MonotonicNotification() {
  // Notify may still hold it.
  absl::MutexLock lock(&mutex_);
}

void MonotonicNotification::Notify() {
  absl::MutexLock lock(&mutex_);
  LOCKSTEP_CHECK(!HasBeenNotified());
  notified_.store(true, std::memory_order_release);
  changed_.SignalAll();
}

void MonotonicNotification::WaitForNotification() const { WaitFor(absl::InfiniteDuration()); }

bool MonotonicNotification::WaitFor(absl::Duration timeout) const {
  if (HasBeenNotified()) return true;
  absl::MutexLock lock(&mutex_);
  return changed_.AwaitFor(&mutex_, absl::Condition(this, &MonotonicNotification::HasBeenNotified),
                           timeout);
}

}  // namespace lockstep
