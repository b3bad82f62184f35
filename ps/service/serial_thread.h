// One thread that does one thing after another: for what blocks on a disk. What waits is bounded.
#pragma once

#include <deque>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"

namespace lockstep::ps {

// Thread-safe. Destruction does what is left, then returns.
class SerialThread {
 public:
  // A chief has one task under way; another chief, or the same after a lost connection, one more.
  static constexpr size_t kMaxWaiting = 8;

  SerialThread();
  ~SerialThread();

  // False, and nothing is done, when kMaxWaiting others wait already.
  [[nodiscard]] bool TryDo(absl::AnyInvocable<void()> work);

 private:
  void Run();
  bool HasWorkOrClosing() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return closing_ || !work_.empty();
  }

  absl::Mutex mutex_;
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<absl::AnyInvocable<void()>> work_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace lockstep::ps
