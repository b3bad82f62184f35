#include "chief/loop/event_loop.h"

#include <utility>

#include "common/base/clock.h"

namespace lockstep::chief {

void EventLoop::Post(absl::AnyInvocable<void()> work) {
  bool is_first = false;
  {
    absl::MutexLock lock(&mutex_);
    // What is refused is destroyed after the lock is released: it is the caller's argument.
    if (quit_) return;
    queue_.push_back(std::move(work));
    is_first = queue_.size() == 1;
  }
  // The loop waits only while there is no work.
  if (is_first) news_.Signal();
}

void EventLoop::Run(absl::Duration tick, const std::function<void()>& on_tick) {
  // Not the time of day, which may jump.
  const Clock* clock = Clock::Real();
  absl::Duration next_tick = clock->Monotonic() + tick;
  std::deque<absl::AnyInvocable<void()>> left;
  while (true) {
    absl::AnyInvocable<void()> work;
    {
      absl::MutexLock lock(&mutex_);
      while (!HasNews() && clock->Monotonic() < next_tick) news_.WaitUntil(&mutex_, next_tick);
      if (quit_) {
        left.swap(queue_);
        return;
      }
      if (!queue_.empty()) {
        work = std::move(queue_.front());
        queue_.pop_front();
      }
    }
    if (work) work();
    if (clock->Monotonic() >= next_tick) {
      on_tick();
      next_tick = clock->Monotonic() + tick;
    }
  }
}

void EventLoop::Quit() {
  absl::MutexLock lock(&mutex_);
  quit_ = true;
  news_.Signal();
}

}  // namespace lockstep::chief
