#include "common/rpc/process.h"

#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <random>
#include <thread>

namespace lockstep {
namespace {

sigset_t WatchedSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  // Sent by ~SignalWatcher to its own thread.
  sigaddset(&signals, SIGUSR2);
  return signals;
}

ExitCode CodeOf(int signal) {
  return signal == SIGINT ? ExitCode::kInterrupted : ExitCode::kTerminated;
}

}  // namespace

void PrepareProcess() {
  constexpr int kNever = 1 << 30;
  mallopt(M_TRIM_THRESHOLD, kNever);
  mallopt(M_MMAP_THRESHOLD, 32 << 20);  // the most that glibc takes
  mallopt(M_TOP_PAD, 64 << 20);
  signal(SIGPIPE, SIG_IGN);
  const sigset_t signals = WatchedSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

Incarnation MakeIncarnation() {
  std::random_device random;
  uint64_t id = 0;
  while (id == 0) id = (static_cast<uint64_t>(random()) << 32) | random();
  return Incarnation(id);
}

std::string HostName() {
  char name[256] = {};
  if (gethostname(name, sizeof(name) - 1) != 0) return "unknown";
  return name;
}

class SignalWatcher::Impl {
 public:
  explicit Impl(std::function<void(ExitCode)> on_signal)
      : on_signal_(std::move(on_signal)), thread_([this] { Watch(); }) {}
  ~Impl() {
    pthread_kill(thread_.native_handle(), SIGUSR2);
    thread_.join();
  }

 private:
  void Watch() {
    const sigset_t signals = WatchedSignals();
    bool told = false;
    while (true) {
      int signal = 0;
      if (sigwait(&signals, &signal) != 0) continue;
      if (signal == SIGUSR2) return;
      if (told) _exit(static_cast<int>(CodeOf(signal)));
      told = true;
      on_signal_(CodeOf(signal));
    }
  }

  const std::function<void(ExitCode)> on_signal_;
  std::thread thread_;  // last: uses on_signal_
};

SignalWatcher::SignalWatcher(std::function<void(ExitCode)> on_signal)
    : impl_(std::make_unique<Impl>(std::move(on_signal))) {}

SignalWatcher::~SignalWatcher() = default;

int ExitWith(const std::string& who, const absl::Status& status) {
  if (!status.ok()) {
    std::fprintf(stderr, "%s: %s\n", who.c_str(), std::string(status.message()).c_str());
  }
  return static_cast<int>(ExitCodeFor(status));
}

}  // namespace lockstep
