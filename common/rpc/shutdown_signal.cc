#include "common/rpc/shutdown_signal.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "common/base/standard_streams.h"

namespace lockstep {
namespace {

sigset_t StopSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  return signals;
}

}  // namespace

ShutdownSignal::ShutdownSignal() {
  signal(SIGHUP, SIG_IGN);
  IgnoreBrokenPipes();
  const sigset_t signals = StopSignals();
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
}

void ShutdownSignal::WatchSignals() {
  const sigset_t signals = StopSignals();
  bool signalled = false;
  while (true) {
    int signal = 0;
    sigwait(&signals, &signal);
    {
      absl::MutexLock lock(&mutex_);
      if (closing_) return;
    }
    Stop(signal == SIGINT ? ExitCode::kInterrupted : ExitCode::kTerminated);
    if (signalled) _exit(static_cast<int>(Wait()));
    signalled = true;
  }
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

}  // namespace lockstep
