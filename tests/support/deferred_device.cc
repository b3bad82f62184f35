#include "tests/support/deferred_device.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <utility>

#include "common/base/check.h"

namespace lockstep::test {

using worker::DeviceBuffer;
using worker::HostTask;

namespace {

constexpr uint64_t kLongestRun = 8;  // pieces of work of one stream in a row
constexpr int kUnset = 0xff;         // bytes of memory that nobody has written: NaN

}  // namespace

// All fields are guarded by the device's mutex.
class DeferredEvent : public worker::Event {
 public:
  explicit DeferredEvent(DeferredDevice* device) : device_(device) {}

  absl::Status Wait() override {
    LOCKSTEP_CHECK(device_->RunUntil(*this));  // otherwise streams wait for each other
    return device_->status();
  }

  DeferredDevice* const device_;
  uint64_t recorded = 0;
  uint64_t reached = 0;
};

class DeferredStream : public worker::HostStream {
 public:
  // `memory` is that of its device.
  DeferredStream(DeferredDevice* device, GuardedMemory* memory) : device_(device), memory_(memory) {
    absl::MutexLock lock(&device_->mutex_);
    rank_ = device_->random_();
    device_->streams_.push_back(this);
  }
  ~DeferredStream() override {
    absl::MutexLock lock(&device_->mutex_);
    std::erase(device_->streams_, this);
  }

  void Enqueue(const HostTask& task) override {
    absl::MutexLock lock(&device_->mutex_);
    queue_.push_back({task, nullptr, 0, false});
  }
  void CopyFromPeer(void* to, const void* from, size_t bytes) override {
    absl::MutexLock lock(&device_->mutex_);
    queue_.push_back({CopyTask(to, from, bytes), nullptr, 0, false, true});
  }
  void Record(worker::Event* event) override {
    absl::MutexLock lock(&device_->mutex_);
    auto* const own = static_cast<DeferredEvent*>(event);
    queue_.push_back({{}, own, ++own->recorded, false});
  }
  void WaitFor(worker::Event* event) override {
    absl::MutexLock lock(&device_->mutex_);
    auto* const own = static_cast<DeferredEvent*>(event);
    uint64_t& waited = waited_[own];
    if (waited >= own->recorded) return;
    waited = own->recorded;
    if (device_->waits_++ == device_->omitted_wait_) return;
    queue_.push_back({{}, own, own->recorded, true});
  }

  struct Work {
    HostTask task;
    DeferredEvent* event = nullptr;  // to record or to wait for; null: a task
    uint64_t time = 0;
    bool waits = false;
    bool touches_peers = false;
  };

  bool CanRun() const {
    if (queue_.empty()) return false;
    const Work& first = queue_.front();
    return !first.waits || first.event->reached >= first.time;
  }

  DeferredDevice* const device_;
  GuardedMemory* const memory_;
  uint64_t rank_ = 0;  // a lower one runs first, where streams do not take turns
  std::deque<Work> queue_;
  std::map<const DeferredEvent*, uint64_t> waited_;  // for which Record of an event
};

// All work is that of the device that made it.
class DeferredPeer : public worker::Device {
 public:
  explicit DeferredPeer(DeferredDevice* device) : device_(device) {
    absl::MutexLock lock(&device_->mutex_);
    device_->all_memory_.push_back(&memory_);
  }
  ~DeferredPeer() override {
    absl::MutexLock lock(&device_->mutex_);
    std::erase(device_->all_memory_, &memory_);
  }

  std::string name() const override { return "peer of deferred"; }
  bool is_host() const override { return false; }
  void MakeCurrent() const override { device_->MakeCurrent(); }
  absl::StatusOr<DeviceBuffer> Allocate(size_t bytes) override {
    return device_->Allocate(bytes, &memory_);
  }
  absl::StatusOr<DeviceBuffer> AllocatePinned(size_t bytes) override {
    return device_->AllocatePinned(bytes);
  }
  absl::StatusOr<worker::HostRegistration> RegisterHost(std::span<std::byte> memory) override {
    return device_->RegisterHost(memory);
  }
  absl::StatusOr<worker::HostRegistration> RegisterReadOnly(
      std::span<const std::byte> memory) override {
    return device_->RegisterReadOnly(memory);
  }
  absl::StatusOr<std::unique_ptr<worker::Stream>> CreateStream(
      const worker::StreamOptions&) override {
    return std::make_unique<DeferredStream>(device_, &memory_);
  }
  absl::StatusOr<std::unique_ptr<worker::Event>> CreateEvent() override {
    return device_->CreateEvent();
  }
  absl::Status status() const override { return device_->status(); }

 private:
  DeferredDevice* const device_;
  GuardedMemory memory_;  // guarded by its mutex
};

DeferredDevice::DeferredDevice(int threads, uint64_t seed)
    : cpu_(threads), all_memory_({&memory_}), unblocked_(std::make_unique<DeferredEvent>(this)) {
  Reseed(seed);
}

std::unique_ptr<worker::Device> DeferredDevice::MakePeer() {
  return std::make_unique<DeferredPeer>(this);
}

void DeferredDevice::Reseed(uint64_t seed) {
  absl::MutexLock lock(&mutex_);
  UseSeed(seed);
}

void DeferredDevice::UseSeed(uint64_t seed) {
  seed_ = seed;
  random_.seed(seed);
  in_turns_ = random_() % 2 == 0;
  for (DeferredStream* stream : streams_) stream->rank_ = random_();
}

void DeferredDevice::OmitWait(int64_t index) {
  absl::MutexLock lock(&mutex_);
  omitted_wait_ = waits_ + index;
}

int64_t DeferredDevice::waits() const {
  absl::MutexLock lock(&mutex_);
  return waits_;
}

void DeferredDevice::EnqueueTogether(std::span<worker::HostStream* const> streams,
                                     const HostTask& task) {
  absl::MutexLock lock(&mutex_);
  const auto make_event = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    meetings_.push_back(std::make_unique<DeferredEvent>(this));
    auto* const event = static_cast<DeferredEvent*>(meetings_.back().get());
    event->recorded = 1;
    return event;
  };
  auto* const first = static_cast<DeferredStream*>(streams.front());
  DeferredEvent* const done = make_event();
  for (worker::HostStream* const stream : streams.subspan(1)) {
    DeferredEvent* const arrived = make_event();
    auto& queue = static_cast<DeferredStream*>(stream)->queue_;
    queue.push_back({{}, arrived, 1, false});
    queue.push_back({{}, done, 1, true});
    first->queue_.push_back({{}, arrived, 1, true});
  }
  first->queue_.push_back({task, nullptr, 0, false, true});
  first->queue_.push_back({{}, done, 1, false});
}

void DeferredDevice::Block(std::span<worker::HostStream* const> streams) {
  absl::MutexLock lock(&mutex_);
  auto* const event = static_cast<DeferredEvent*>(unblocked_.get());
  if (event->recorded == event->reached) ++event->recorded;
  for (worker::HostStream* const stream : streams) {
    static_cast<DeferredStream*>(stream)->queue_.push_back({{}, event, event->recorded, true});
  }
}

void DeferredDevice::Unblock() {
  absl::MutexLock lock(&mutex_);
  auto* const event = static_cast<DeferredEvent*>(unblocked_.get());
  event->reached = event->recorded;
}

void DeferredDevice::FailTask(int64_t index) {
  absl::MutexLock lock(&mutex_);
  tasks_until_failure_ = index;
}

absl::StatusOr<DeviceBuffer> DeferredDevice::Allocate(size_t bytes) {
  return Allocate(bytes, &memory_);
}

absl::StatusOr<DeviceBuffer> DeferredDevice::Allocate(size_t bytes, GuardedMemory* memory) {
  absl::MutexLock lock(&mutex_);
  std::byte* const allocated = memory->Allocate(bytes);
  if (allocated == nullptr) {
    return absl::ResourceExhaustedError("the deferred device has no memory left");
  }
  return DeviceBuffer(allocated, [this, memory](std::byte* unused) {
    absl::MutexLock deletion(&mutex_);
    memory->Free(unused);
  });
}

absl::StatusOr<DeviceBuffer> DeferredDevice::AllocatePinned(size_t bytes) {
  auto buffer = cpu_.Allocate(bytes);
  if (buffer.ok()) std::memset(buffer->get(), kUnset, bytes);
  return buffer;
}

absl::StatusOr<std::unique_ptr<worker::Stream>> DeferredDevice::CreateStream(
    const worker::StreamOptions&) {
  return std::make_unique<DeferredStream>(this, &memory_);
}

absl::StatusOr<std::unique_ptr<worker::Event>> DeferredDevice::CreateEvent() {
  return std::make_unique<DeferredEvent>(this);
}

absl::Status DeferredDevice::status() const {
  absl::MutexLock lock(&mutex_);
  return status_;
}

bool DeferredDevice::TryReach(worker::Event* event) {
  return RunUntil(*static_cast<DeferredEvent*>(event));
}

bool DeferredDevice::RunUntil(const DeferredEvent& event) {
  MakeCurrent();
  absl::MutexLock lock(&mutex_);
  const uint64_t time = event.recorded;
  std::vector<DeferredStream*> ready;
  while (event.reached < time) {
    ready.clear();
    for (DeferredStream* stream : streams_) {
      if (stream->CanRun()) ready.push_back(stream);
    }
    if (ready.empty()) return false;
    DeferredStream* const stream = Choose(ready);
    const uint64_t run = in_turns_ ? 1 + random_() % kLongestRun : 1;
    for (uint64_t i = 0; i < run && stream->CanRun() && event.reached < time; ++i) {
      RunFirstOf(stream);
    }
  }
  if (!AllHaveRun()) return true;
  meetings_.clear();
  UseSeed(seed_ + 1);
  return true;
}

bool DeferredDevice::IsIdle() const {
  absl::MutexLock lock(&mutex_);
  return AllHaveRun();
}

bool DeferredDevice::AllHaveRun() const {
  return std::ranges::all_of(streams_,
                             [](const DeferredStream* stream) { return stream->queue_.empty(); });
}

DeferredStream* DeferredDevice::Choose(const std::vector<DeferredStream*>& ready) {
  if (in_turns_) return ready[random_() % ready.size()];
  return *std::ranges::min_element(ready, {}, &DeferredStream::rank_);
}

void DeferredDevice::RunFirstOf(DeferredStream* stream) {
  const DeferredStream::Work work = stream->queue_.front();
  stream->queue_.pop_front();
  if (work.event != nullptr) {
    if (!work.waits) work.event->reached = std::max(work.event->reached, work.time);
    return;
  }
  if (!status_.ok()) return;
  if (tasks_until_failure_-- == 0) {
    status_ = absl::InternalError("the deferred device was told to fail");
    return;
  }
  const std::span<GuardedMemory* const> touched = work.touches_peers
                                                      ? std::span<GuardedMemory* const>(all_memory_)
                                                      : std::span(&stream->memory_, 1);
  for (GuardedMemory* const memory : touched) memory->Allow(true);
  const HostTask& task = work.task;
  absl::Status status = task.run(task.object, task.argument, task.number);
  for (GuardedMemory* const memory : touched) memory->Allow(false);
  if (!status.ok()) status_ = std::move(status);
}

}  // namespace lockstep::test
