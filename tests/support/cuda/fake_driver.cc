#include "tests/support/cuda/fake_driver.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "common/base/check.h"
#include "tests/support/cuda/fake_calls.h"
#include "worker/device/cuda/launch_lock.h"

namespace lockstep::test {

using worker::HostStream;
using worker::cuda::CUcontext;
using worker::cuda::CUdeviceptr;
using worker::cuda::CUevent;
using worker::cuda::CUresult;
using worker::cuda::CUstream;
using worker::cuda::DriverFunctions;
using worker::cuda::kErrorCaptureInvalidated;
using worker::cuda::kErrorCaptureUnsupported;
using worker::cuda::kSuccess;
using worker::cuda::LaunchLock;

namespace {

FakeDriver* current_driver = nullptr;
thread_local CUcontext current_context = nullptr;

// By a thread whose stream captures. What waits for work, or may, and what takes or frees memory.
bool IsForbiddenInCapture(absl::string_view call) {
  constexpr absl::string_view kForbidden[] = {
      "cuMemAlloc",        "cuMemFree",           "cuMemHostAlloc",   "cuMemFreeHost",
      "cuMemHostRegister", "cuMemHostUnregister", "cuModuleLoadData", "cuModuleUnload",
      "cuCtxSynchronize",  "cuStreamSynchronize"};
  return std::ranges::find(kForbidden, call) != std::end(kForbidden);
}

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
    FakeGraphCalls::AddTo(&all);
    return all;
  }();
  return functions;
}

FakeDriver& FakeDriver::Current() { return *current_driver; }

bool FakeDriver::Enqueue(CUstream stream, std::function<void()> work) {
  absl::MutexLock lock(&mutex_);
  NoteLockOf("work");
  return Submit(stream, [this, work = std::move(work)](HostStream* on) {
           mutex_.AssertHeld();
           EnqueueOn(on, work);
         }) == kSuccess;
}

CUresult FakeDriver::Submit(CUstream stream, Node node) {
  HostStream* const found = Find(stream);
  if (found == nullptr) return kErrorInvalidHandle;
  Capture* const capture = CaptureOf(stream);
  if (capture == nullptr) {
    node(found);
  } else if (capture->is_valid) {
    capture->graph.push_back(std::move(node));
  } else {
    return kErrorCaptureInvalidated;
  }
  return kSuccess;
}

FakeDriver::Capture* FakeDriver::CaptureOf(CUstream stream) {
  const auto found = captures_.find(stream);
  return found == captures_.end() ? nullptr : &found->second;
}

CUresult FakeDriver::InvalidateCaptures() {
  CUresult result = kSuccess;
  for (auto& [stream, capture] : captures_) {
    if (capture.thread != std::this_thread::get_id()) continue;
    capture.is_valid = false;
    result = kErrorCaptureUnsupported;
  }
  return result;
}

bool FakeDriver::InvalidateCapturesOfDevice() {
  bool has_captures = false;
  for (auto& [stream, capture] : captures_) {
    if (Find(stream) == nullptr) continue;
    capture.is_valid = false;
    has_captures = true;
  }
  return has_captures;
}

void FakeDriver::WaitForDevice() {
  absl::MutexLock lock(&mutex_);
  InvalidateCapturesOfDevice();
}

void FakeDriver::OmitCopyToDevice(int64_t index) {
  absl::MutexLock lock(&mutex_);
  omitted_copy_ = copies_to_device_ + index;
}

int64_t FakeDriver::copies_to_device() const {
  absl::MutexLock lock(&mutex_);
  return copies_to_device_;
}

int64_t FakeDriver::copies_from_pageable() const {
  absl::MutexLock lock(&mutex_);
  return copies_from_pageable_;
}

int64_t FakeDriver::allocations() const {
  absl::MutexLock lock(&mutex_);
  return allocations_;
}

int64_t FakeDriver::pinned_allocations() const {
  absl::MutexLock lock(&mutex_);
  return pinned_allocations_;
}

void FakeDriver::BlockPageableCopies() {
  absl::MutexLock lock(&mutex_);
  blocks_pageable_copies_ = true;
}

bool FakeDriver::has_hung() const {
  absl::MutexLock lock(&mutex_);
  return has_hung_;
}

bool FakeDriver::IsPinned(const void* begin, size_t bytes) const {
  const auto* const first = static_cast<const std::byte*>(begin);
  for (const auto* const all : {&pinned_, &registered_}) {
    auto after = all->upper_bound(begin);
    if (after == all->begin()) continue;
    const auto& [memory, pinned] = *--after;
    if (first + bytes <= static_cast<const std::byte*>(memory) + pinned.bytes) return true;
  }
  return false;
}

worker::HostTask FakeDriver::TaskOf(std::function<void()> work) {
  launches_.push_back(std::make_unique<std::function<void()>>(std::move(work)));
  const auto run = [](void* launch, const void*, uint64_t) {
    (*static_cast<std::function<void()>*>(launch))();
    return absl::OkStatus();
  };
  return {run, launches_.back().get(), nullptr, 0};
}

void FakeDriver::EnqueueOn(HostStream* stream, std::function<void()> work) {
  stream->Enqueue(TaskOf(std::move(work)));
}

bool FakeDriver::EnqueueTogether(std::span<const CUstream> streams, std::span<const int> devices,
                                 std::function<void()> work) {
  absl::MutexLock lock(&mutex_);
  std::vector<HostStream*> all;
  for (size_t i = 0; i < streams.size(); ++i) {
    const auto found = streams_.find(streams[i]);
    if (found == streams_.end() || found->second.device != devices[i]) return false;
    if (CaptureOf(streams[i]) != nullptr) return false;
    all.push_back(static_cast<HostStream*>(found->second.object.get()));
  }
  work_.EnqueueTogether(all, TaskOf(std::move(work)));
  return true;
}

void FakeDriver::Block(std::span<const CUstream> streams) {
  absl::MutexLock lock(&mutex_);
  std::vector<HostStream*> all;
  for (const CUstream stream : streams) {
    all.push_back(static_cast<HostStream*>(streams_.at(stream).object.get()));
  }
  work_.Block(all);
}

bool FakeDriver::IsMemoryOf(int device, const void* begin, size_t bytes) const {
  absl::MutexLock lock(&mutex_);
  return DeviceOf(reinterpret_cast<CUdeviceptr>(begin), bytes) == device;
}

void FakeDriver::FailCall(int64_t index, CUresult result) {
  absl::MutexLock lock(&mutex_);
  failing_call_ = calls_ + index;
  failing_result_ = result;
}

void FakeDriver::LoseDevice(int device) {
  absl::MutexLock lock(&mutex_);
  lost_device_ = device;
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
         graphs_.size() + executables_.size() + modules_ + contexts_;
}

std::set<std::string> FakeDriver::calls_without_lock() const {
  absl::MutexLock lock(&mutex_);
  return calls_without_lock_;
}

void FakeDriver::NoteLockOf(const char* call) {
  if (LaunchLock::held() == LaunchLock::Hold::kNone) calls_without_lock_.insert(call);
}

CUresult FakeDriver::Enter(const char* call, bool needs_context) {
  NoteLockOf(call);
  if (calls_++ == failing_call_) {
    failed_call_ = call;
    return failing_result_;
  }
  if (IsForbiddenInCapture(call)) {
    const CUresult result = InvalidateCaptures();
    if (result != kSuccess) return result;
  }
  const int device = CurrentDevice();
  if (needs_context && (device < 0 || device >= device_count_)) return kErrorInvalidContext;
  if (needs_context && lost_device_ == device) return kErrorLaunchFailed;
  return WorkResult();
}

void FakeDriver::SetDeviceCount(int count) {
  LOCKSTEP_CHECK(count <= kMostDevices);
  absl::MutexLock lock(&mutex_);
  while (static_cast<int>(peers_.size()) + 1 < count) peers_.push_back(work_.MakePeer());
  device_count_ = count;
}

void FakeDriver::CutLink(int device, int peer) {
  absl::MutexLock lock(&mutex_);
  cut_links_.emplace(device, peer);
}

void FakeDriver::CutLinks() {
  for (int device = 0; device < kMostDevices; ++device) {
    for (int peer = 0; peer < kMostDevices; ++peer) CutLink(device, peer);
  }
}

bool FakeDriver::ReadsDirectly(int device, int peer) const {
  absl::MutexLock lock(&mutex_);
  return enabled_links_.contains({device, peer});
}

int FakeDriver::device_count() const {
  absl::MutexLock lock(&mutex_);
  return device_count_;
}

int FakeDriver::CurrentDevice() const { return DeviceOf(FakeCalls::CurrentContext()); }

int FakeDriver::DeviceOf(CUcontext context) const {
  if (context == nullptr) return -1;
  return static_cast<int>(reinterpret_cast<const char*>(context) - context_of_.data());
}

worker::Device* FakeDriver::WorkOf(int device) {
  return device == 0 ? &work_ : peers_[static_cast<size_t>(device) - 1].get();
}

// An error of the work stays, and every call returns it.
CUresult FakeDriver::WorkResult() const {
  return work_.status().ok() ? kSuccess : kErrorLaunchFailed;
}

CUresult FakeDriver::RunAll() {
  bool has_run_all = true;
  for (auto& [handle, stream] : streams_) {
    events_of_all_.push_back(*work_.CreateEvent());
    worker::Event* const reached = events_of_all_.back().get();
    stream.object->Record(reached);
    if (!work_.TryReach(reached)) has_run_all = false;
  }
  if (has_run_all) {
    launches_.clear();
    events_of_all_.clear();
  }
  return WorkResult();
}

bool FakeDriver::RunStream(CUstream stream) {
  if (CaptureOf(stream) != nullptr) return true;
  events_of_all_.push_back(*work_.CreateEvent());
  worker::Event* const reached = events_of_all_.back().get();
  Find(stream)->Record(reached);
  return work_.TryReach(reached);
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
