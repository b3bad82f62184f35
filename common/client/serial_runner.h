// Runs one function over and over as long as it finds something to do, on one thread at a time, and
// again whenever somebody says that there may be more. What a pusher and a puller have in common.
#pragma once

#include <functional>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/gate.h"
#include "common/client/waker.h"

namespace lockstep {

// Thread-safe.
class SerialRunner {
 public:
  // `step` does one thing and returns whether there may be more; called without locks.
  explicit SerialRunner(std::function<bool()> step);
  ~SerialRunner() { Close(); }

  // Steps until there is nothing to do. Where another thread is at it already, that one goes on and
  // this call returns at once.
  void Run();
  // Run, in a while, on a thread of its own.
  void RunIn(absl::Duration delay) { waker_.WakeIn(delay); }

  // For each call in flight whose callback will touch what `step` works on. Holds nothing, and the
  // call must not start, when it was closed.
  std::shared_ptr<Gate::Pass> Hold() { return std::make_shared<Gate::Pass>(gate_.Enter()); }
  // No more steps; returns when none is under way and nothing is held.
  void Close() { gate_.Close(); }

 private:
  const std::function<bool()> step_;
  absl::Mutex mutex_;
  bool running_ ABSL_GUARDED_BY(mutex_) = false;
  bool again_ ABSL_GUARDED_BY(mutex_) = false;
  Gate gate_;
  Waker waker_;  // last: it goes first
};

}  // namespace lockstep
