#include "tests/support/deferred_device.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <utility>

#include "common/base/check.h"
#include "common/tensor/tensor.h"
#include "worker/device/host_stream.h"

namespace lockstep::test {

using worker::DeviceBuffer;
using worker::HostTask;

namespace {

constexpr size_t kArenaBytes = size_t{1} << 32;  // reserved, not used
constexpr uint64_t kLongestRun = 8;              // pieces of work of one stream in a row
constexpr int kUnset = 0xff;                     // bytes of memory that nobody has written: NaN

std::byte* ReserveArena() {
  void* const memory =
      mmap(nullptr, kArenaBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  LOCKSTEP_CHECK(memory != MAP_FAILED);
  return static_cast<std::byte*>(memory);
}

}  // namespace

// All fields are guarded by the device's mutex.
class DeferredEvent : public worker::Event {
 public:
  explicit DeferredEvent(DeferredDevice* device) : device_(device) {}

  absl::Status Wait() override {
    device_->RunUntil(*this);
    return device_->status();
  }

  DeferredDevice* const device_;
  uint64_t recorded = 0;
  uint64_t reached = 0;
};

class DeferredStream : public worker::HostStream {
 public:
  explicit DeferredStream(DeferredDevice* device) : device_(device) {
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
  };

  bool CanRun() const {
    if (queue_.empty()) return false;
    const Work& first = queue_.front();
    return !first.waits || first.event->reached >= first.time;
  }

  DeferredDevice* const device_;
  uint64_t rank_ = 0;  // a lower one runs first, where streams do not take turns
  std::deque<Work> queue_;
  std::map<const DeferredEvent*, uint64_t> waited_;  // for which Record of an event
};

DeferredDevice::DeferredDevice(int threads, uint64_t seed) : cpu_(threads), arena_(ReserveArena()) {
  Reseed(seed);
}

DeferredDevice::~DeferredDevice() { munmap(arena_, kArenaBytes); }

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

void DeferredDevice::FailTask(int64_t index) {
  absl::MutexLock lock(&mutex_);
  tasks_until_failure_ = index;
}

absl::StatusOr<DeviceBuffer> DeferredDevice::Allocate(size_t bytes) {
  const size_t size = Tensor::RoomFor(bytes);
  absl::MutexLock lock(&mutex_);
  // The first gap that is large enough.
  std::byte* at = arena_;
  for (const auto& [begin, length] : blocks_) {
    if (static_cast<size_t>(begin - at) >= size) break;
    at = begin + length;
  }
  if (size > kArenaBytes - static_cast<size_t>(at - arena_)) {
    return absl::ResourceExhaustedError("the deferred device has no memory left");
  }
  blocks_[at] = size;
  used_ = std::max(used_, static_cast<size_t>(at - arena_) + size);
  Protect(/*allow=*/true);
  std::memset(at, kUnset, size);
  Protect(/*allow=*/false);
  return DeviceBuffer(at, [this](std::byte* memory) { Free(memory); });
}

void DeferredDevice::Free(std::byte* memory) {
  absl::MutexLock lock(&mutex_);
  blocks_.erase(memory);
}

absl::StatusOr<DeviceBuffer> DeferredDevice::AllocatePinned(size_t bytes) {
  auto buffer = cpu_.Allocate(bytes);
  if (buffer.ok()) std::memset(buffer->get(), kUnset, bytes);
  return buffer;
}

absl::StatusOr<std::unique_ptr<worker::Stream>> DeferredDevice::CreateStream(
    const worker::StreamOptions&) {
  return std::make_unique<DeferredStream>(this);
}

absl::StatusOr<std::unique_ptr<worker::Event>> DeferredDevice::CreateEvent() {
  return std::make_unique<DeferredEvent>(this);
}

absl::Status DeferredDevice::status() const {
  absl::MutexLock lock(&mutex_);
  return status_;
}

void DeferredDevice::Protect(bool allow) {
  const int access = allow ? PROT_READ | PROT_WRITE : PROT_NONE;
  if (used_ > 0) LOCKSTEP_CHECK(mprotect(arena_, used_, access) == 0);
}

void DeferredDevice::RunUntil(const DeferredEvent& event) {
  MakeCurrent();
  absl::MutexLock lock(&mutex_);
  const uint64_t time = event.recorded;
  std::vector<DeferredStream*> ready;
  while (event.reached < time) {
    ready.clear();
    for (DeferredStream* stream : streams_) {
      if (stream->CanRun()) ready.push_back(stream);
    }
    LOCKSTEP_CHECK(!ready.empty());  // streams wait for each other
    DeferredStream* const stream = Choose(ready);
    const uint64_t run = in_turns_ ? 1 + random_() % kLongestRun : 1;
    for (uint64_t i = 0; i < run && stream->CanRun() && event.reached < time; ++i) {
      RunFirstOf(stream);
    }
  }
  const auto is_idle = [](const DeferredStream* stream) { return stream->queue_.empty(); };
  if (std::ranges::all_of(streams_, is_idle)) UseSeed(seed_ + 1);
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
  Protect(/*allow=*/true);
  const HostTask& task = work.task;
  absl::Status status = task.run(task.object, task.argument, task.number);
  Protect(/*allow=*/false);
  if (!status.ok()) status_ = std::move(status);
}

}  // namespace lockstep::test
