#include "common/base/thread_pool.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/base/time_slice.h"

namespace lockstep {

ThreadPool::ThreadPool(int threads) {
  LOCKSTEP_CHECK(threads >= 1);
  for (int i = 1; i < threads; ++i) {
    threads_.emplace_back([this] {
      UseShortTimeSlices();  // a loop is not to wait for who helps
      while (Loop* const loop = WaitForLoop()) {
        loop->TakePart();
        LeaveLoop();
      }
    });
  }
}

ThreadPool::~ThreadPool() {
  {
    absl::MutexLock lock(&mutex_);
    LOCKSTEP_CHECK(loop_ == nullptr);
    is_stopping_ = true;
  }
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::Loop::TakePart() {
  while (true) {
    const size_t begin = next.fetch_add(step, std::memory_order_relaxed);
    if (begin >= count) return;
    work(begin, std::min(count, begin + step));
  }
}

void ThreadPool::ForRanges(size_t count, size_t step,
                           absl::FunctionRef<void(size_t, size_t)> work) {
  LOCKSTEP_CHECK(step > 0);
  if (count == 0) return;
  if (count <= step) return work(0, count);
  Loop loop{count, step, work};
  bool is_shared = false;
  if (!threads_.empty()) {
    absl::MutexLock lock(&mutex_);
    is_shared = loop_ == nullptr;
    if (is_shared) loop_ = &loop;
  }
  loop.TakePart();
  if (!is_shared) return;
  absl::MutexLock lock(&mutex_);
  // Until all have left it is this loop: one from within, on a thread that helps, would wait for
  // that thread.
  mutex_.Await(absl::Condition(this, &ThreadPool::IsAlone));
  loop_ = nullptr;
}

ThreadPool::Loop* ThreadPool::WaitForLoop() {
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(this, &ThreadPool::IsCalled));
  if (is_stopping_) return nullptr;
  ++num_helping_;
  return loop_;
}

void ThreadPool::LeaveLoop() {
  absl::MutexLock lock(&mutex_);
  --num_helping_;
}

}  // namespace lockstep
