// Replaces the C library's syscall() in the programs that it is linked into: a wait on a futex
// until a time of day becomes one until the same moment of the monotonic clock. All else is passed
// on.
//
// abseil's timed waits end at a time of day, and gRPC's timers wait with them. While the clock of a
// machine is set back by an hour, no deadline of a call under way and no ping of a connection is
// due for an hour: a worker does not notice that its chief has died. Neither library has a switch.
#include <dlfcn.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdarg>
#include <cstdint>

namespace {

constexpr int64_t kNanosPerSecond = 1'000'000'000;

int64_t NanosOf(const timespec& time) { return time.tv_sec * kNanosPerSecond + time.tv_nsec; }

int64_t NowOf(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return NanosOf(now);
}

bool IsUntilTimeOfDay(long number, long command) {
  constexpr long kWait = FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME;
  return number == SYS_futex && (command & ~FUTEX_PRIVATE_FLAG) == kWait;
}

timespec OnMonotonicClock(const timespec& time_of_day) {
  const int64_t left = NanosOf(time_of_day) - NowOf(CLOCK_REALTIME);
  const int64_t until = NowOf(CLOCK_MONOTONIC) + (left > 0 ? left : 0);
  return {until / kNanosPerSecond, until % kNanosPerSecond};
}

using Function = long(long, ...);

// Of the C library. Not a static variable of a function: the guard of one waits with syscall() for
// another thread that initialises it, so the call would come back here, and so on without end.
constinit std::atomic<Function*> hidden = nullptr;

Function* Hidden() {
  Function* function = hidden.load(std::memory_order_relaxed);
  if (function == nullptr) {
    function = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, "syscall"));
    hidden.store(function, std::memory_order_relaxed);
  }
  return function;
}

}  // namespace

// It reads six arguments where a caller may have passed fewer, as the C library's own does.
extern "C" __attribute__((no_sanitize("address"))) long syscall(long number, ...) noexcept {
  va_list list;
  va_start(list, number);
  long arguments[6];
  for (long& argument : arguments) argument = va_arg(list, long);
  va_end(list);
  auto [word, command, value, timeout, word2, bits] = arguments;
  timespec until;
  if (timeout != 0 && IsUntilTimeOfDay(number, command)) {
    until = OnMonotonicClock(*reinterpret_cast<const timespec*>(timeout));
    timeout = reinterpret_cast<long>(&until);
    command &= ~FUTEX_CLOCK_REALTIME;
  }
  return Hidden()(number, word, command, value, timeout, word2, bits);
}
