// An executor that works when told, on the test's thread. Post is thread-safe.
#pragma once

#include <deque>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "chief/loop/executor.h"

namespace lockstep::chief {

class ManualExecutor final : public Executor {
 public:
  void Post(absl::AnyInvocable<void()> work) override {
    absl::MutexLock lock(&mutex_);
    queue_.push_back(std::move(work));
  }

  // Until nothing is left.
  void Run() {
    while (RunNext()) continue;
  }
  // False: nothing was left.
  bool RunNext() {
    absl::AnyInvocable<void()> work;
    {
      absl::MutexLock lock(&mutex_);
      if (queue_.empty()) return false;
      work = std::move(queue_.front());
      queue_.pop_front();
    }
    work();
    return true;
  }

  // Waits until another thread has posted something, and works.
  void AwaitWork() {
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(this, &ManualExecutor::HasWork));
    }
    Run();
  }

 private:
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !queue_.empty(); }

  absl::Mutex mutex_;
  std::deque<absl::AnyInvocable<void()>> queue_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep::chief
