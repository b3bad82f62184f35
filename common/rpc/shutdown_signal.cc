#include "common/rpc/shutdown_signal.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/clock.h"
#include "common/base/standard_streams.h"
#include "common/log/log.h"

namespace lockstep {
namespace {

constexpr absl::Duration kLogGrace = absl::Milliseconds(100);

sigset_t WatchedSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGHUP);
  return signals;
}

}  // namespace

ShutdownSignal::ShutdownSignal(absl::Duration repeated) : repeated_(repeated) {
  IgnoreBrokenPipes();
  const sigset_t signals = WatchedSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  watcher_ = std::thread([this] { WatchSignals(); });
}

ShutdownSignal::~ShutdownSignal() {
  {
    absl::MutexLock lock(&mutex_);
    closing_ = true;
  }
  pthread_kill(watcher_.native_handle(), SIGTERM);
  watcher_.join();
  has_ended_.Notify();
  if (deadline_.joinable()) deadline_.join();
}

void ShutdownSignal::WatchSignals() {
  const sigset_t signals = WatchedSignals();
  std::optional<absl::Duration> signalled;
  while (true) {
    int signal = 0;
    sigwait(&signals, &signal);
    {
      absl::MutexLock lock(&mutex_);
      if (closing_) return;
    }
    if (signal == SIGHUP) {
      HangUp();
      continue;
    }
    Stop(signal == SIGINT ? ExitCode::kInterrupted : ExitCode::kTerminated);
    const absl::Duration now = Clock::Real()->Monotonic();
    if (!signalled.has_value()) {
      signalled = now;
    } else if (now - *signalled >= repeated_) {
      _exit(static_cast<int>(Wait()));
    }
  }
}

void ShutdownSignal::HangUp() {
  std::function<void()> read_again;
  {
    absl::MutexLock lock(&mutex_);
    has_hung_up_ = read_again_ == nullptr;
    is_calling_ = !has_hung_up_;
    read_again = read_again_;
  }
  if (read_again != nullptr) read_again();
  absl::MutexLock lock(&mutex_);
  is_calling_ = false;
}

void ShutdownSignal::OnHangup(std::function<void()> read_again) {
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(
      +[](bool* is_calling) { return !*is_calling; }, &is_calling_));
  read_again_ = std::move(read_again);
  if (read_again_ == nullptr || !has_hung_up_) return;
  pthread_kill(watcher_.native_handle(), SIGHUP);
}

void ShutdownSignal::Stop(ExitCode code) {
  absl::MutexLock lock(&mutex_);
  if (stopped_.HasBeenNotified()) return;
  code_ = code;
  stopped_.Notify();
}

ExitCode ShutdownSignal::Wait() const {
  stopped_.WaitForNotification();
  absl::MutexLock lock(&mutex_);
  return code_;
}

void ShutdownSignal::EndWithin(absl::Duration limit) {
  deadline_ = std::thread([this, limit] {
    if (has_ended_.WaitFor(limit)) return;
    // The log may be on the disk that does not answer.
    std::thread([limit] {
      log::Warning(absl::StrCat("still busy ", absl::FormatDuration(limit),
                                " after it was to end: a disk or a device does not answer"));
    }).detach();
    absl::SleepFor(kLogGrace);
    _exit(static_cast<int>(Wait()));
  });
}

}  // namespace lockstep
