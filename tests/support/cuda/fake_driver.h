// A CUDA driver without a GPU: a table of functions whose device is the deferred one, so that work
// runs late, in any order that streams and events allow, and device memory faults under the host.
// Refuses what a driver refuses: no current context, memory and handles that it did not make. Its
// modules have the kernels that are linked in, compiled for the host.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "tests/support/deferred_device.h"
#include "worker/device/cuda/driver_api.h"
#include "worker/device/host_stream.h"

namespace lockstep::test {

inline constexpr worker::cuda::CUresult kErrorInvalidValue = 1;
inline constexpr worker::cuda::CUresult kErrorInvalidContext = 201;
inline constexpr worker::cuda::CUresult kErrorInvalidHandle = 400;
inline constexpr worker::cuda::CUresult kErrorNotFound = 500;
inline constexpr worker::cuda::CUresult kErrorLaunchFailed = 719;

// One at a time: the driver's functions have no object.
class FakeDriver {
 public:
  explicit FakeDriver(uint64_t seed);
  ~FakeDriver();

  static const worker::cuda::DriverFunctions& functions();
  // The one that exists, for libraries that tests imitate over it.
  static FakeDriver& Current();

  // Work that such a library enqueues. False: there is no such stream.
  bool Enqueue(worker::cuda::CUstream stream, std::function<void()> work);

  // Order of the work, waits that are left out, work that fails.
  DeferredDevice* work() { return &work_; }

  // The so-many-th call from now on (from 0) returns this error. One that frees something frees it.
  void FailCall(int64_t index, worker::cuda::CUresult result);
  // So far.
  int64_t calls() const;
  // "cuMemAlloc"; empty: none has failed so.
  std::string failed_call() const;
  // What the device has, and cuMemAlloc refuses to exceed.
  void SetMemory(size_t bytes);
  // Buffers, registrations, streams, events, modules and contexts that were made and not freed.
  size_t live() const;

 private:
  friend struct FakeCalls;
  friend struct FakeDeviceCalls;
  friend struct FakeMemoryCalls;
  friend struct FakeStreamCalls;
  using CUresult = worker::cuda::CUresult;

  // What a call returns at once; kSuccess: it goes on.
  CUresult Enter(const char* call, bool needs_context = true) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Runs what was enqueued, as far as it was recorded. The error of the work.
  CUresult RunAll() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  CUresult WorkResult() const;
  bool IsDeviceMemory(worker::cuda::CUdeviceptr begin, size_t bytes) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EnqueueOn(worker::HostStream* stream, std::function<void()> work)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Null: there is none.
  worker::HostStream* Find(worker::cuda::CUstream stream) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  worker::Event* Find(worker::cuda::CUevent event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  struct Buffer {
    worker::DeviceBuffer memory;
    size_t bytes = 0;
  };

  DeferredDevice work_;
  mutable absl::Mutex mutex_;
  std::map<worker::cuda::CUdeviceptr, Buffer> buffers_ ABSL_GUARDED_BY(mutex_);
  std::map<void*, worker::DeviceBuffer> pinned_ ABSL_GUARDED_BY(mutex_);
  std::set<void*> registered_ ABSL_GUARDED_BY(mutex_);
  // By handle, which is the address of the object.
  std::map<void*, std::unique_ptr<worker::Stream>> streams_ ABSL_GUARDED_BY(mutex_);
  std::map<void*, std::unique_ptr<worker::Event>> events_ ABSL_GUARDED_BY(mutex_);
  // Kernels and other work that may not have run.
  std::vector<std::unique_ptr<std::function<void()>>> launches_ ABSL_GUARDED_BY(mutex_);
  size_t modules_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t contexts_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t memory_ ABSL_GUARDED_BY(mutex_) = size_t{1} << 30;
  size_t used_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t calls_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t failing_call_ ABSL_GUARDED_BY(mutex_) = -1;
  CUresult failing_result_ ABSL_GUARDED_BY(mutex_) = 0;
  std::string failed_call_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep::test
