// Threads for loops that are worth more than one: over memory, mostly. The thread that has the loop
// takes part in it, so that it never waits for another one to wake up: what the others do not take,
// it does itself.
#pragma once

#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"

namespace lockstep {

// Thread-safe.
class ThreadPool {
 public:
  // `threads` count the caller of a loop: from 2 on the pool has threads of its own.
  explicit ThreadPool(int threads);
  ~ThreadPool();  // no loop may be under way
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // Calls work(begin, end) for ranges of `step`, the last one shorter, that cover [0, count);
  // returns when all calls have. Ranges run on any of the threads, in any order. Allocates nothing.
  // There is one loop at a time: one that comes meanwhile, also from within, runs on its caller's
  // thread alone.
  void ForRanges(size_t count, size_t step, absl::FunctionRef<void(size_t, size_t)> work)
      ABSL_LOCKS_EXCLUDED(mutex_);

  int num_threads() const { return static_cast<int>(threads_.size()) + 1; }

 private:
  struct Loop {
    const size_t count;
    const size_t step;
    const absl::FunctionRef<void(size_t, size_t)> work;
    std::atomic<size_t> next = 0;  // begin of the first range that nobody has taken

    void TakePart();
    bool HasMore() const { return next.load(std::memory_order_relaxed) < count; }
  };

  // nullptr: the pool ends.
  Loop* WaitForLoop() ABSL_LOCKS_EXCLUDED(mutex_);
  void LeaveLoop() ABSL_LOCKS_EXCLUDED(mutex_);
  bool IsCalled() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return is_stopping_ || (loop_ != nullptr && loop_->HasMore());
  }
  bool IsAlone() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return num_helping_ == 0; }

  absl::Mutex mutex_;
  Loop* loop_ ABSL_GUARDED_BY(mutex_) = nullptr;  // on the stack of its caller
  int num_helping_ ABSL_GUARDED_BY(mutex_) = 0;   // threads of the pool that are in the loop
  bool is_stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace lockstep
