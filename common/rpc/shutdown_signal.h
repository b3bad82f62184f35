// What signals tell a daemon: to end (SIGINT, SIGTERM), which it may also tell itself, and to read
// its configuration again (SIGHUP).
#pragma once

#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/exit_code.h"
#include "common/base/monotonic_wait.h"

namespace lockstep {

// Make one at the start of main, before any other thread: the signals are blocked in the thread
// that makes it and in those that it starts later. Thread-safe.
//
// The first signal stops with 130 (SIGINT) or 143 (SIGTERM); a second one while the process is
// still ending ends it at once with the same code, unless it comes within kRepeatedSignal:
// timeout(1) and launchers signal a process and then its group, and mean one end. SIGHUP and
// SIGPIPE end nothing: a daemon goes on when its terminal closes or the reader of its log has gone.
class ShutdownSignal {
 public:
  static constexpr absl::Duration kRepeatedSignal = absl::Milliseconds(500);

  explicit ShutdownSignal(absl::Duration repeated = kRepeatedSignal);
  ~ShutdownSignal();
  ShutdownSignal(const ShutdownSignal&) = delete;
  ShutdownSignal& operator=(const ShutdownSignal&) = delete;

  // Asks the process to end. The first call's code counts.
  void Stop(ExitCode code);
  // Notified when the process is asked to end. Lives as long as this object.
  const MonotonicNotification* notification() const { return &stopped_; }
  // `read_again` is called after each SIGHUP, on the thread that waits for signals, and once for
  // all that came before. Null: nothing is called any more; a call under way has ended then. Not in
  // `read_again`.
  void OnHangup(std::function<void()> read_again);
  // Waits for it; what main should return.
  ExitCode Wait() const;
  // The process has been asked to end. After `limit` it is ended with that code, whatever it waits
  // for: a disk or a device may never answer. Call once.
  void EndWithin(absl::Duration limit);

 private:
  void WatchSignals();
  void HangUp();

  const absl::Duration repeated_;
  mutable absl::Mutex mutex_;
  bool has_hung_up_ ABSL_GUARDED_BY(mutex_) = false;  // and nobody was there to be called
  bool is_calling_ ABSL_GUARDED_BY(mutex_) = false;   // read_again_
  std::function<void()> read_again_ ABSL_GUARDED_BY(mutex_);
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  ExitCode code_ ABSL_GUARDED_BY(mutex_) = ExitCode::kDone;
  MonotonicNotification stopped_;
  std::thread watcher_;
  MonotonicNotification has_ended_;
  std::thread deadline_;  // of EndWithin
};

}  // namespace lockstep
