// ShutdownSignal waits for a daemon's signals. SIGINT and SIGTERM end it; it may also end itself.
// SIGHUP makes it read its configuration again.
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
// The first signal stops with 130 (SIGINT) or 143 (SIGTERM). A second one while the process is
// still ending ends it at once with the same code. Within kRepeatedSignal the second one is
// ignored: timeout(1) and launchers signal a process and then its group. SIGHUP and SIGPIPE end
// nothing: a daemon goes on when its terminal closes or the reader of its log has gone.
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
  // all that came before. Null: it is not called any more; a call under way has ended on return.
  // Must not be called in `read_again`.
  void OnHangup(std::function<void()> read_again);
  // Waits until the process is asked to end. Returns the exit code for main.
  ExitCode Wait() const;
  // The process has been asked to end. After `limit` it is ended with that code, even if it still
  // waits: a disk or a device may never answer. Call once.
  void EndWithin(absl::Duration limit);

 private:
  void WatchSignals();
  void HangUp();

  const absl::Duration repeated_;
  mutable absl::Mutex mutex_;
  bool has_hung_up_ ABSL_GUARDED_BY(mutex_) = false;  // while read_again_ was null
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
