#include "tests/support/cuda/fake_driver.h"

#include <utility>

#include "common/base/check.h"
#include "tests/support/cuda/fake_calls.h"

namespace lockstep::test {

using worker::HostStream;
using worker::cuda::CUcontext;
using worker::cuda::CUdeviceptr;
using worker::cuda::CUevent;
using worker::cuda::CUresult;
using worker::cuda::CUstream;
using worker::cuda::DriverFunctions;
using worker::cuda::kSuccess;

namespace {

FakeDriver* current_driver = nullptr;
thread_local CUcontext current_context = nullptr;

}  // namespace

FakeDriver& FakeCalls::Driver() { return FakeDriver::Current(); }

CUcontext& FakeCalls::CurrentContext() { return current_context; }

FakeDriver::FakeDriver(uint64_t seed) : work_(/*threads=*/1, seed) {
  LOCKSTEP_CHECK(current_driver == nullptr);
  current_driver = this;
  while (peers_.size() + 1 < kMostDevices) peers_.push_back(work_.MakePeer());
}

FakeDriver::~FakeDriver() {
  current_driver = nullptr;
  FakeCalls::CurrentContext() = nullptr;
}

const DriverFunctions& FakeDriver::functions() {
  static const DriverFunctions functions = [] {
    DriverFunctions all;
    FakeDeviceCalls::AddTo(&all);
    FakeMemoryCalls::AddTo(&all);
    FakeStreamCalls::AddTo(&all);
    return all;
  }();
  return functions;
}

FakeDriver& FakeDriver::Current() { return *current_driver; }

bool FakeDriver::Enqueue(CUstream stream, std::function<void()> work) {
  absl::MutexLock lock(&mutex_);
  HostStream* const found = Find(stream);
  if (found != nullptr) EnqueueOn(found, std::move(work));
  return found != nullptr;
}

void FakeDriver::EnqueueOn(HostStream* stream, std::function<void()> work) {
  launches_.push_back(std::make_unique<std::function<void()>>(std::move(work)));
  const auto run = [](void* launch, const void*, uint64_t) {
    (*static_cast<std::function<void()>*>(launch))();
    return absl::OkStatus();
  };
  stream->Enqueue({run, launches_.back().get(), nullptr, 0});
}

void FakeDriver::FailCall(int64_t index, CUresult result) {
  absl::MutexLock lock(&mutex_);
  failing_call_ = calls_ + index;
  failing_result_ = result;
}

int64_t FakeDriver::calls() const {
  absl::MutexLock lock(&mutex_);
  return calls_;
}

std::string FakeDriver::failed_call() const {
  absl::MutexLock lock(&mutex_);
  return failed_call_;
}

void FakeDriver::SetMemory(size_t bytes) {
  absl::MutexLock lock(&mutex_);
  memory_ = bytes;
}

size_t FakeDriver::live() const {
  absl::MutexLock lock(&mutex_);
  return buffers_.size() + pinned_.size() + registered_.size() + streams_.size() + events_.size() +
         modules_ + contexts_;
}

CUresult FakeDriver::Enter(const char* call, bool needs_context) {
  if (calls_++ == failing_call_) {
    failed_call_ = call;
    return failing_result_;
  }
  const int device = CurrentDevice();
  if (needs_context && (device < 0 || device >= device_count_)) return kErrorInvalidContext;
  return WorkResult();
}

void FakeDriver::SetDeviceCount(int count) {
  LOCKSTEP_CHECK(count <= kMostDevices);
  absl::MutexLock lock(&mutex_);
  device_count_ = count;
}

void FakeDriver::CutLinks() {
  absl::MutexLock lock(&mutex_);
  has_links_ = false;
}

int FakeDriver::device_count() const {
  absl::MutexLock lock(&mutex_);
  return device_count_;
}

int FakeDriver::CurrentDevice() const {
  const auto* const context = reinterpret_cast<const char*>(FakeCalls::CurrentContext());
  return context == nullptr ? -1 : static_cast<int>(context - context_of_.data());
}

worker::Device* FakeDriver::WorkOf(int device) {
  return device == 0 ? &work_ : peers_[static_cast<size_t>(device) - 1].get();
}

// An error of the work stays, and every call returns it.
CUresult FakeDriver::WorkResult() const {
  return work_.status().ok() ? kSuccess : kErrorLaunchFailed;
}

CUresult FakeDriver::RunAll() {
  const std::unique_ptr<worker::Event> reached = *work_.CreateEvent();
  for (auto& [handle, stream] : streams_) {
    stream.object->Record(reached.get());
    reached->Wait().IgnoreError();
  }
  launches_.clear();
  return WorkResult();
}

std::optional<int> FakeDriver::DeviceOf(CUdeviceptr begin, size_t bytes) const {
  auto after = buffers_.upper_bound(begin);
  if (after == buffers_.begin()) return std::nullopt;
  const auto& [address, buffer] = *--after;
  const bool is_inside =
      begin - address <= buffer.bytes && bytes <= buffer.bytes - (begin - address);
  return is_inside ? std::optional(buffer.device) : std::nullopt;
}

bool FakeDriver::IsOwnMemory(CUdeviceptr begin, size_t bytes) const {
  return DeviceOf(begin, bytes) == CurrentDevice();
}

HostStream* FakeDriver::Find(CUstream stream) {
  const auto found = streams_.find(stream);
  if (found == streams_.end() || found->second.device != CurrentDevice()) return nullptr;
  return static_cast<HostStream*>(found->second.object.get());
}

worker::Event* FakeDriver::Find(CUevent event) {
  const auto found = events_.find(event);
  return found == events_.end() ? nullptr : found->second.object.get();
}

}  // namespace lockstep::test
