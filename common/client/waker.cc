#include "common/client/waker.h"

#include <algorithm>
#include <utility>

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
  next_ = std::min(next_, absl::Now() + delay);
  if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
  changed_.Signal();
}

void Waker::Run() {
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      while (!closing_ && absl::Now() < next_) changed_.WaitWithDeadline(&mutex_, next_);
      if (closing_) return;
      next_ = absl::InfiniteFuture();
    }
    wake_();
  }
}

}  // namespace lockstep
