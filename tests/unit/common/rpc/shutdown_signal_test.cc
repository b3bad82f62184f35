#include "common/rpc/shutdown_signal.h"

#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cerrno>

#include "absl/synchronization/notification.h"
#include "common/base/clock.h"
#include "common/rpc/process.h"

namespace lockstep {
namespace {

// How a process ends that gets `signals` while it waits, and that takes for ever to clean up if
// `hangs`, for which it has `limit`.
int ExitCodeAfter(const std::vector<int>& signals, bool hangs,
                  absl::Duration limit = absl::InfiniteDuration()) {
  int ready[2];
  REQUIRE(pipe(ready) == 0);
  const pid_t child = fork();
  if (child == 0) {
    ShutdownSignal notice(/*repeated=*/absl::ZeroDuration());
    if (write(ready[1], "r", 1) != 1) _exit(1);
    const ExitCode code = notice.Wait();
    if (write(ready[1], "s", 1) != 1) _exit(1);
    if (limit < absl::InfiniteDuration()) notice.EndWithin(limit);
    while (hangs) pause();
    _exit(static_cast<int>(code));
  }
  char byte;
  for (int signal : signals) {
    REQUIRE(read(ready[0], &byte, 1) == 1);
    kill(child, signal);
  }
  int status = 0;
  waitpid(child, &status, 0);
  close(ready[0]);
  close(ready[1]);
  REQUIRE(WIFEXITED(status));
  return WEXITSTATUS(status);
}

TEST_CASE("Signals end a process with their codes") {
  CHECK(ExitCodeAfter({SIGTERM}, false) == 143);
  CHECK(ExitCodeAfter({SIGINT}, false) == 130);
}

TEST_CASE("A second signal ends a process that hangs, with the first one's code") {
  CHECK(ExitCodeAfter({SIGINT, SIGTERM}, true) == 130);
}

bool IsPending(int signal) {
  sigset_t pending;
  return sigpending(&pending) == 0 && sigismember(&pending, signal) == 1;
}

TEST_CASE("Two signals at once are one wish to end") {
  const pid_t child = fork();
  if (child == 0) {
    ShutdownSignal notice(/*repeated=*/absl::InfiniteDuration());
    kill(getpid(), SIGINT);
    notice.Wait();
    kill(getpid(), SIGTERM);
    while (IsPending(SIGTERM)) sched_yield();
    // It has been dealt with once a later signal is.
    absl::Notification is_over;
    notice.OnHangup([&] { is_over.Notify(); });
    kill(getpid(), SIGHUP);
    is_over.WaitForNotification();
    _exit(7);
  }
  int status = 0;
  waitpid(child, &status, 0);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 7);
}

TEST_CASE("A process that hangs is ended when its time for that is over") {
  CHECK(ExitCodeAfter({SIGTERM}, true, absl::Milliseconds(1)) == 143);
}

TEST_CASE("A process that ends in time is not waited for") {
  const absl::Duration start = Clock::Real()->Monotonic();
  {
    ShutdownSignal notice;
    notice.Stop(ExitCode::kDone);
    notice.EndWithin(absl::Minutes(10));
  }
  CHECK(Clock::Real()->Monotonic() - start < absl::Minutes(1));
}

TEST_CASE("A closed terminal and a log without a reader do not end a process") {
  const pid_t child = fork();
  if (child == 0) {
    ShutdownSignal notice;
    kill(getpid(), SIGHUP);
    int log[2];
    if (pipe(log) != 0 || close(log[0]) != 0) _exit(1);
    if (write(log[1], "line", 4) != -1 || errno != EPIPE) _exit(2);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("SIGHUP has the configuration read again, also one that came before anybody could") {
  ShutdownSignal notice;
  MonotonicNotification reads[3];
  std::atomic<int> next = 0;
  kill(getpid(), SIGHUP);
  notice.OnHangup([&] { reads[next++].Notify(); });
  reads[0].WaitForNotification();
  kill(getpid(), SIGHUP);
  reads[1].WaitForNotification();
  notice.OnHangup(nullptr);
  kill(getpid(), SIGHUP);
  CHECK_FALSE(notice.notification()->HasBeenNotified());
  notice.OnHangup([&] { reads[next++].Notify(); });
  reads[2].WaitForNotification();
  notice.OnHangup(nullptr);
  CHECK(next == 3);
}

TEST_CASE("The first reason to stop counts") {
  ShutdownSignal notice;
  CHECK_FALSE(notice.notification()->HasBeenNotified());
  notice.Stop(ExitCode::kDone);
  notice.Stop(ExitCode::kPeersLost);
  CHECK(notice.notification()->HasBeenNotified());
  CHECK(notice.Wait() == ExitCode::kDone);
}

TEST_CASE("Incarnations differ and are not zero") {
  const Incarnation first = NewIncarnation();
  CHECK(first.value() != 0);
  CHECK(first != NewIncarnation());
}

}  // namespace
}  // namespace lockstep
