#include "worker/service/background_call.h"

#include <utility>

namespace lockstep::worker {

BackgroundCall::BackgroundCall(std::function<void()> call)
    : call_(std::move(call)), thread_([this] { Run(); }) {}

BackgroundCall::~BackgroundCall() {
  {
    absl::MutexLock lock(&mutex_);
    is_closed_ = true;
  }
  thread_.join();
}

void BackgroundCall::Request() {
  absl::MutexLock lock(&mutex_);
  is_requested_ = true;
}

void BackgroundCall::Run() {
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(this, &BackgroundCall::HasNews));
      if (is_closed_) return;
      is_requested_ = false;
    }
    call_();
  }
}

}  // namespace lockstep::worker
