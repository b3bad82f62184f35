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
  const bool has_context = FakeCalls::CurrentContext() == reinterpret_cast<CUcontext>(this);
  if (needs_context && !has_context) return kErrorInvalidContext;
  return WorkResult();
}

// An error of the work stays, and every call returns it.
CUresult FakeDriver::WorkResult() const {
  return work_.status().ok() ? kSuccess : kErrorLaunchFailed;
}

CUresult FakeDriver::RunAll() {
  const std::unique_ptr<worker::Event> reached = *work_.CreateEvent();
  for (auto& [handle, stream] : streams_) {
    stream->Record(reached.get());
    reached->Wait().IgnoreError();
  }
  launches_.clear();
  return WorkResult();
}

bool FakeDriver::IsDeviceMemory(CUdeviceptr begin, size_t bytes) const {
  auto after = buffers_.upper_bound(begin);
  if (after == buffers_.begin()) return false;
  const auto& [address, buffer] = *--after;
  return begin - address <= buffer.bytes && bytes <= buffer.bytes - (begin - address);
}

HostStream* FakeDriver::Find(CUstream stream) {
  const auto found = streams_.find(stream);
  return found == streams_.end() ? nullptr : static_cast<HostStream*>(found->second.get());
}

worker::Event* FakeDriver::Find(CUevent event) {
  const auto found = events_.find(event);
  return found == events_.end() ? nullptr : found->second.get();
}

}  // namespace lockstep::test
