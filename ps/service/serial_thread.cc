#include "ps/service/serial_thread.h"

#include <utility>

namespace lockstep::ps {

SerialThread::SerialThread() : thread_([this] { Run(); }) {}

SerialThread::~SerialThread() {
  {
    absl::MutexLock lock(&mutex_);
    closing_ = true;
  }
  thread_.join();
}

bool SerialThread::TryDo(absl::AnyInvocable<void()> work) {
  absl::MutexLock lock(&mutex_);
  if (work_.size() >= kMaxWaiting) return false;
  work_.push_back(std::move(work));
  return true;
}

void SerialThread::Run() {
  while (true) {
    absl::AnyInvocable<void()> work;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(this, &SerialThread::HasWorkOrClosing));
      if (work_.empty()) return;
      work = std::move(work_.front());
      work_.pop_front();
    }
    work();
  }
}

}  // namespace lockstep::ps
