#include "worker/device/cpu/cpu_stream.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace lockstep::worker {
namespace {

// Pieces of work that a step of a large model enqueues at once: queues seldom have to grow.
constexpr size_t kQueued = 1024;

}  // namespace

absl::Status CpuEvent::Wait() {
  WaitUntil(times_recorded());
  return device_->status();
}

uint64_t CpuEvent::Recorded(CpuStream* stream) {
  absl::MutexLock lock(&mutex_);
  stream_ = stream;
  return ++recorded_;
}

uint64_t CpuEvent::times_recorded() const {
  absl::MutexLock lock(&mutex_);
  return recorded_;
}

void CpuEvent::Reach(uint64_t time) {
  absl::MutexLock lock(&mutex_);
  reached_ = std::max(reached_, time);
}

bool CpuEvent::HasReached(uint64_t time) const {
  absl::MutexLock lock(&mutex_);
  return reached_ >= time;
}

void CpuEvent::WaitUntil(uint64_t time) {
  CpuStream* stream = nullptr;
  {
    absl::MutexLock lock(&mutex_);
    if (reached_ >= time) return;
    stream = stream_;
  }
  stream->RunUntil(*this, time);
  const auto reached = [this, time]()
                           ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return reached_ >= time; };
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(&reached));
}

void CpuStream::Record(Event* event) {
  const auto reach = [](void* object, const void*, uint64_t time) {
    static_cast<CpuEvent*>(object)->Reach(time);
    return absl::OkStatus();
  };
  auto* const own = static_cast<CpuEvent*>(event);
  Add({{reach, own, nullptr, own->Recorded(this)}});
}

void CpuStream::WaitFor(Event* event) {
  const auto wait = [](void* object, const void*, uint64_t time) {
    static_cast<CpuEvent*>(object)->WaitUntil(time);
    return absl::OkStatus();
  };
  auto* const own = static_cast<CpuEvent*>(event);
  Add({{wait, own, nullptr, own->times_recorded()}});
}

void CpuStream::Run(const Work& work) {
  if (work.skippable && device_->has_failed()) return;
  absl::Status status = work.task.run(work.task.object, work.task.argument, work.task.number);
  if (!status.ok()) device_->Fail(std::move(status));
}

void LazyCpuStream::RunUntil(const CpuEvent& event, uint64_t time) {
  device_->MakeCurrent();
  while (!event.HasReached(time)) {
    LOCKSTEP_CHECK(next_ < queue_.size());
    const Work work = queue_[next_++];
    Run(work);
  }
  if (next_ < queue_.size()) return;
  queue_.clear();
  next_ = 0;
}

BackgroundCpuStream::BackgroundCpuStream(CpuDevice* device)
    : CpuStream(device), thread_([this] { RunQueue(); }) {
  absl::MutexLock lock(&mutex_);
  queue_.reserve(kQueued);
}

BackgroundCpuStream::~BackgroundCpuStream() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.join();
}

void BackgroundCpuStream::Add(const Work& work) {
  absl::MutexLock lock(&mutex_);
  queue_.push_back(work);
}

void BackgroundCpuStream::RunQueue() {
  device_->MakeCurrent();
  const auto has_work = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopping_ || !queue_.empty();
  };
  std::vector<Work> running;
  running.reserve(kQueued);
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(&has_work));
      if (stopping_) return;
      running.swap(queue_);
    }
    for (const Work& work : running) Run(work);
    running.clear();
  }
}

}  // namespace lockstep::worker
