#include "common/base/monotonic_wait.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <limits>

#include "common/base/check.h"
#include "common/base/clock.h"

namespace lockstep {
namespace {

// The longest single wait. Callers repeat it for longer ones.
constexpr absl::Duration kLongest = absl::Hours(24);

uint32_t* AddressOf(std::atomic<uint32_t>* word) {
  static_assert(sizeof *word == sizeof(uint32_t) && std::atomic<uint32_t>::is_always_lock_free);
  return reinterpret_cast<uint32_t*>(word);
}

}  // namespace

void MonotonicCondVar::Signal() { Wake(1); }

void MonotonicCondVar::SignalAll() { Wake(std::numeric_limits<int>::max()); }

// A waiter counts itself before it looks at the signals, and a signal is counted before the waiters
// are looked at: one of the two sees the other.
void MonotonicCondVar::Wake(int most) {
  signals_.fetch_add(1);
  if (waiters_.load() == 0) return;
  syscall(SYS_futex, AddressOf(&signals_), FUTEX_WAKE_PRIVATE, most, nullptr, nullptr, 0);
}

void MonotonicCondVar::WaitUntil(absl::Mutex* mutex, absl::Duration deadline) {
  const absl::Duration now = Clock::Real()->Monotonic();
  if (deadline <= now) return;
  // FUTEX_WAIT_BITSET without FUTEX_CLOCK_REALTIME takes a point in time of CLOCK_MONOTONIC.
  const timespec until = absl::ToTimespec(std::min(deadline, now + kLongest));
  waiters_.fetch_add(1);
  const uint32_t seen = signals_.load();
  mutex->Unlock();
  syscall(SYS_futex, AddressOf(&signals_), FUTEX_WAIT_BITSET_PRIVATE, seen, &until, nullptr,
          FUTEX_BITSET_MATCH_ANY);
  mutex->Lock();
  waiters_.fetch_sub(1);
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
