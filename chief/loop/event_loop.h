// The executor on a thread of its own, with a regular tick.
#pragma once

#include <deque>
#include <functional>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "chief/loop/executor.h"
#include "common/base/monotonic_wait.h"

namespace lockstep::chief {

class EventLoop final : public Executor {
 public:
  void Post(absl::AnyInvocable<void()> work) override;

  // Works on the caller's thread until Quit, with `on_tick` about every `tick`. What is left is
  // destroyed. Once.
  void Run(absl::Duration tick, const std::function<void()>& on_tick);

  // From any thread; the work that runs now is finished first.
  void Quit();

 private:
  bool HasNews() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return quit_ || !queue_.empty(); }

  absl::Mutex mutex_;
  std::deque<absl::AnyInvocable<void()>> queue_ ABSL_GUARDED_BY(mutex_);
  bool quit_ ABSL_GUARDED_BY(mutex_) = false;
  MonotonicCondVar news_;
};

}  // namespace lockstep::chief
