#include "common/base/monotonic_wait.h"

#include <dlfcn.h>
#include <pthread.h>
#include <time.h>

#include <catch2/catch.hpp>
#include <optional>
#include <thread>

#include "absl/time/clock.h"
#include "common/base/clock.h"

namespace {

// Of the thread's last timed wait. A wait on the time of day goes another way than through here.
thread_local std::optional<clockid_t> waited_by;

}  // namespace

// Hides the library's.
extern "C" int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                                      clockid_t clock, const timespec* deadline) {
  waited_by = clock;
  using Function = int(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*);
  static auto* const hidden =
      reinterpret_cast<Function*>(dlsym(RTLD_NEXT, "pthread_cond_clockwait"));
  return hidden(condition, mutex, clock, deadline);
}

namespace lockstep {
namespace {

constexpr absl::Duration kShort = absl::Milliseconds(2);

TEST_CASE("a timed wait is on the monotonic clock and not on the time of day") {
  absl::Mutex mutex;
  MonotonicCondVar changed;
  const MonotonicNotification never;
  bool holds = false;
  SECTION("until a deadline") {
    absl::MutexLock lock(&mutex);
    changed.WaitUntil(&mutex, Clock::Real()->Monotonic() + kShort);
  }
  SECTION("for a condition") {
    absl::MutexLock lock(&mutex);
    CHECK_FALSE(changed.AwaitFor(&mutex, absl::Condition(&holds), kShort));
  }
  SECTION("for a notification") { CHECK_FALSE(never.WaitFor(kShort)); }
  CHECK(waited_by == CLOCK_MONOTONIC);
}

TEST_CASE("a wait for a condition lasts its time, however often it is woken") {
  absl::Mutex mutex;
  MonotonicCondVar changed;
  bool holds = false;
  std::atomic<bool> over = false;
  std::thread waker([&] {
    while (!over) changed.SignalAll();
  });
  const absl::Duration start = Clock::Real()->Monotonic();
  {
    absl::MutexLock lock(&mutex);
    CHECK_FALSE(changed.AwaitFor(&mutex, absl::Condition(&holds), absl::Milliseconds(10)));
  }
  CHECK(Clock::Real()->Monotonic() - start >= absl::Milliseconds(10));
  over = true;
  waker.join();
}

TEST_CASE("a condition that holds is not waited for, nor is a time that is over") {
  absl::Mutex mutex;
  MonotonicCondVar changed;
  bool holds = true;
  waited_by.reset();
  absl::MutexLock lock(&mutex);
  CHECK(changed.AwaitFor(&mutex, absl::Condition(&holds), absl::Hours(1)));
  holds = false;
  CHECK_FALSE(changed.AwaitFor(&mutex, absl::Condition(&holds), absl::ZeroDuration()));
  CHECK_FALSE(changed.AwaitFor(&mutex, absl::Condition(&holds), -absl::InfiniteDuration()));
  changed.WaitUntil(&mutex, -absl::InfiniteDuration());
  CHECK_FALSE(waited_by.has_value());
}

TEST_CASE("a signal ends a wait without limit") {
  absl::Mutex mutex;
  MonotonicCondVar changed;
  bool holds = false;
  std::thread changer([&] {
    absl::MutexLock lock(&mutex);
    holds = true;
    changed.Signal();
  });
  {
    absl::MutexLock lock(&mutex);
    CHECK(changed.AwaitFor(&mutex, absl::Condition(&holds), absl::InfiniteDuration()));
  }
  changer.join();
}

TEST_CASE("a notification may go as soon as its waiter has returned") {
  for (int i = 0; i < 200; ++i) {
    auto notification = std::make_unique<MonotonicNotification>();
    CHECK_FALSE(notification->HasBeenNotified());
    std::thread notifier([&] { notification->Notify(); });
    CHECK(notification->WaitFor(absl::Hours(1)));
    CHECK(notification->HasBeenNotified());
    notification.reset();
    notifier.join();
  }
}

}  // namespace
}  // namespace lockstep
