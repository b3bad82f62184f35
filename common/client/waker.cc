#include "common/client/waker.h"

#include <algorithm>
#include <utility>

#include "common/base/clock.h"

namespace lockstep {

Waker::~Waker() {
  std::thread thread;
  {
    absl::MutexLock lock(&mutex_);
    closing_ = true;
    thread = std::move(thread_);
  }
  changed_.Signal();
  if (thread.joinable()) thread.join();
}

void Waker::WakeIn(absl::Duration delay) {
  absl::MutexLock lock(&mutex_);
  if (closing_) return;
  next_ = std::min(next_, Clock::Real()->Monotonic() + delay);
  if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
  changed_.Signal();
}

void Waker::Run() {
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      while (!closing_ && Clock::Real()->Monotonic() < next_) changed_.WaitUntil(&mutex_, next_);
      if (closing_) return;
      next_ = absl::InfiniteDuration();
    }
    wake_();
  }
}

}  // namespace lockstep
