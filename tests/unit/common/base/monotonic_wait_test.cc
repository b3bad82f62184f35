#include "common/base/monotonic_wait.h"

#include <dlfcn.h>
#include <linux/futex.h>
#include <sys/syscall.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cstdarg>
#include <memory>
#include <optional>
#include <thread>

#include "common/base/clock.h"

namespace {

// Of the thread's last wait on a futex.
thread_local std::optional<int> waited_with;

}  // namespace

// Hides the C library's: by which clock a wait is timed is seen nowhere else. It reads six
// arguments where a caller may have passed fewer, as the C library's own does.
extern "C" __attribute__((no_sanitize("address"))) long syscall(long number, ...) noexcept {
  va_list list;
  va_start(list, number);
  long arguments[6];
  for (long& argument : arguments) argument = va_arg(list, long);
  va_end(list);
  const int command = static_cast<int>(arguments[1]) & FUTEX_CMD_MASK;
  if (number == SYS_futex && (command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET)) {
    waited_with = static_cast<int>(arguments[1]);
  }
  using Function = long(long, ...);
  static auto* const hidden = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, "syscall"));
  return hidden(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4],
                arguments[5]);
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
  REQUIRE(waited_with.has_value());
  CHECK((*waited_with & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET);
  CHECK((*waited_with & FUTEX_CLOCK_REALTIME) == 0);
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
  waited_with.reset();
  absl::MutexLock lock(&mutex);
  CHECK(changed.AwaitFor(&mutex, absl::Condition(&holds), absl::Hours(1)));
  holds = false;
  CHECK_FALSE(changed.AwaitFor(&mutex, absl::Condition(&holds), absl::ZeroDuration()));
  CHECK_FALSE(changed.AwaitFor(&mutex, absl::Condition(&holds), -absl::InfiniteDuration()));
  changed.WaitUntil(&mutex, -absl::InfiniteDuration());
  CHECK_FALSE(waited_with.has_value());
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
