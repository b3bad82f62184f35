#include <dlfcn.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>

#include "absl/synchronization/notification.h"
#include "common/base/clock.h"
#include "tests/support/process.h"

namespace {

std::atomic<int> hours_ahead = 0;
// Searches for "syscall" that wait for one another.
std::atomic<int> awaited_searches = 0;

}  // namespace

// Hides the C library's: a time of day that a test sets. The kernel's stays as it is.
extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  using Function = int(clockid_t, timespec*);
  static auto* const hidden = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, "clock_gettime"));
  const int result = hidden(clock, time);
  if (clock == CLOCK_REALTIME) time->tv_sec += 3600 * hours_ahead;
  return result;
}

// The linker gives this program's calls of dlsym to it (BUILD.bazel): of the searches that are
// awaited none ends before all have begun, or before 100 ms have passed.
extern "C" void* __real_dlsym(void* handle, const char* name);
extern "C" void* __wrap_dlsym(void* handle, const char* name) {
  if (std::strcmp(name, "syscall") == 0) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
    --awaited_searches;
    while (awaited_searches > 0 && std::chrono::steady_clock::now() < until) sched_yield();
  }
  return __real_dlsym(handle, name);
}

namespace lockstep {
namespace {

constexpr long kWait = FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME | FUTEX_PRIVATE_FLAG;

// Waits for 20 ms of the time of day, as abseil does; the error.
int WaitUntilTimeOfDay() {
  timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_nsec += 20'000'000;
  until.tv_sec += until.tv_nsec / 1'000'000'000;
  until.tv_nsec %= 1'000'000'000;
  uint32_t word = 0;
  return syscall(SYS_futex, &word, kWait, 0, &until, nullptr, FUTEX_BITSET_MATCH_ANY) == 0 ? 0
                                                                                           : errno;
}

TEST_CASE("a wait until a time of day takes as long as it would have when it began") {
  // The time of day was an hour ahead of the kernel's, or behind it, when the end was set.
  for (const int hours : {0, 1, -1}) {
    hours_ahead = hours;
    const auto error = std::make_shared<std::atomic<int>>(0);
    const auto ended = std::make_shared<absl::Notification>();
    const absl::Duration began = Clock::Real()->Monotonic();
    std::thread([error, ended] {
      *error = WaitUntilTimeOfDay();
      ended->Notify();
    }).detach();
    absl::Duration waited;
    while (!ended->HasBeenNotified() && waited < absl::Seconds(10)) {
      std::this_thread::yield();
      waited = Clock::Real()->Monotonic() - began;
    }
    hours_ahead = 0;
    REQUIRE(ended->HasBeenNotified());
    CHECK(*error == ETIMEDOUT);
    CHECK(waited >= absl::Milliseconds(20));
  }
}

TEST_CASE("a wait for a value that has changed already ends at once") {
  timespec until = {};
  uint32_t word = 1;
  CHECK(syscall(SYS_futex, &word, kWait, 0, &until, nullptr, FUTEX_BITSET_MATCH_ANY) == -1);
  CHECK(errno == EAGAIN);
}

TEST_CASE("other system calls are passed on") {
  CHECK(syscall(SYS_getpid) == getpid());
  CHECK(syscall(SYS_close, -1) == -1);
  CHECK(errno == EBADF);
}

// Run by the case below in a process of its own, whose first calls these are.
TEST_CASE("two threads make the first call", "[.first-calls]") {
  std::atomic<int> right = 0;
  const auto call = [&right] {
    if (syscall(SYS_getpid) == getpid()) ++right;
  };
  awaited_searches = 2;
  std::thread other(call);
  call();
  other.join();
  CHECK(right == 2);
}

TEST_CASE("the first calls of a process may come from several threads at once") {
  const test::Ended ended = test::RunToEnd({"/proc/self/exe", "[.first-calls]"}, absl::Seconds(30));
  INFO(ended.output);
  CHECK(ended.exit_code == 0);
}

}  // namespace
}  // namespace lockstep
