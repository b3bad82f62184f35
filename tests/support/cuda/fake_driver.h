// A CUDA driver without a GPU: a table of functions whose devices are the deferred one and its
// peers, so that work runs late, in any order that streams and events allow, and device memory
// faults under the host and under other devices. Refuses what a driver refuses: no current context,
// that of another device, memory and handles that it did not make, and calls that a capture
// forbids. Its modules have the kernels that are linked in, compiled for the host; a kernel is
// loaded when it is first launched.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>
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
inline constexpr worker::cuda::CUresult kErrorIllegalState = 401;
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

  // Work that such a library enqueues. False: the current device has no such stream.
  bool Enqueue(worker::cuda::CUstream stream, std::function<void()> work);

  // The same with one stream of each of several devices: `work` may touch the memory of all, runs
  // when all have come to it, and none goes on before. False: one is not of the device of its place
  // in `devices`, or is captured.
  bool EnqueueTogether(std::span<const worker::cuda::CUstream> streams,
                       std::span<const int> devices, std::function<void()> work);
  // What a library's call that waits for the current device does to captures there: they are lost.
  void WaitForDevice();
  // These streams go no further until work()->Unblock().
  void Block(std::span<const worker::cuda::CUstream> streams);
  // Whether so many bytes from there are in memory of this device.
  bool IsMemoryOf(int device, const void* begin, size_t bytes) const;

  // Order of the work, waits that are left out, work that fails.
  DeferredDevice* work() { return &work_; }

  // 1 until then. At most kMostDevices.
  static constexpr int kMostDevices = 8;
  void SetDeviceCount(int count);
  int device_count() const;

  // The so-many-th copy from the host from now on (from 0) does nothing.
  void OmitCopyToDevice(int64_t index);
  int64_t copies_to_device() const;
  // How many of them were from memory that is neither pinned nor registered.
  int64_t copies_from_pageable() const;

  // How often cuMemAlloc gave memory, and cuMemHostAlloc.
  int64_t allocations() const;
  int64_t pinned_allocations() const;

  // From now on a copy to memory that is neither pinned nor registered returns when it is done, as
  // a driver's does.
  void BlockPageableCopies();
  // Whether such a copy has met work that never ends. A driver's would not have returned.
  bool has_hung() const;

  // The so-many-th call from now on (from 0) returns this error. One that frees something frees it.
  void FailCall(int64_t index, worker::cuda::CUresult result);
  // From now on every call for this device fails, but those for others do not.
  void LoseDevice(int device);
  // So far.
  int64_t calls() const;
  // "cuMemAlloc"; empty: none has failed so.
  std::string failed_call() const;
  // Calls that threads made without the LaunchLock, work that libraries enqueued ("work") included.
  std::set<std::string> calls_without_lock() const;
  // From now on `device` does not read the memory of `peer` directly; or no device another one's.
  void CutLink(int device, int peer);
  void CutLinks();
  // Whether the context of `device` was told to.
  bool ReadsDirectly(int device, int peer) const;
  // What each device has, and cuMemAlloc refuses to exceed.
  void SetMemory(size_t bytes);
  // Buffers, registrations, streams, events, graphs, modules and contexts that were made and not
  // freed.
  size_t live() const;

 private:
  friend struct FakeCalls;
  friend struct FakeDeviceCalls;
  friend struct FakeMemoryCalls;
  friend struct FakeStreamCalls;
  friend struct FakeGraphCalls;
  using CUresult = worker::cuda::CUresult;

  // A call that enqueues, made again on its stream when a graph is launched.
  using Node = std::function<void(worker::HostStream*)>;
  using Graph = std::vector<Node>;
  struct Capture {
    Graph graph;
    std::thread::id thread;
    bool is_valid = true;
  };

  void NoteLockOf(const char* call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // What a call returns at once; kSuccess: it goes on.
  CUresult Enter(const char* call, bool needs_context = true) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Runs what was enqueued, but for streams that are blocked. The error of the work.
  CUresult RunAll() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  CUresult WorkResult() const;
  // Runs what was enqueued on a stream that captures nothing. False: it is blocked.
  bool RunStream(worker::cuda::CUstream stream) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The device whose context is current.
  int CurrentDevice() const;
  // -1: it is none.
  int DeviceOf(worker::cuda::CUcontext context) const;
  worker::Device* WorkOf(int device);
  // Of which device; nullopt: of none.
  std::optional<int> DeviceOf(worker::cuda::CUdeviceptr begin, size_t bytes) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsOwnMemory(worker::cuda::CUdeviceptr begin, size_t bytes) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsPinned(const void* begin, size_t bytes) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EnqueueOn(worker::HostStream* stream, std::function<void()> work)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Has the stream do it, or the graph that it captures. What the call returns.
  CUresult Submit(worker::cuda::CUstream stream, Node node) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Null: the stream captures nothing.
  Capture* CaptureOf(worker::cuda::CUstream stream) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Ends the captures of this thread as invalid; kErrorCaptureUnsupported where there are any.
  CUresult InvalidateCaptures() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Those of every thread on the current device: true where there are any.
  bool InvalidateCapturesOfDevice() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Null: the current device has no such stream, no device such an event.
  worker::HostStream* Find(worker::cuda::CUstream stream) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  worker::Event* Find(worker::cuda::CUevent event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // A task of the work, which is kept until all work is done.
  worker::HostTask TaskOf(std::function<void()> work) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  struct Buffer {
    worker::DeviceBuffer memory;
    size_t bytes = 0;
    int device = 0;
  };
  struct Pinned {
    worker::DeviceBuffer memory;  // null: registered
    size_t bytes = 0;
  };
  template <typename T>
  struct Owned {
    std::unique_ptr<T> object;
    int device = 0;
  };

  DeferredDevice work_;
  std::vector<std::unique_ptr<worker::Device>> peers_;  // devices 1, 2, ...
  std::array<char, kMostDevices> context_of_;           // a context is the address of its device's
  mutable absl::Mutex mutex_;
  std::map<worker::cuda::CUdeviceptr, Buffer> buffers_ ABSL_GUARDED_BY(mutex_);
  std::map<const void*, Pinned> pinned_ ABSL_GUARDED_BY(mutex_);
  std::map<const void*, Pinned> registered_ ABSL_GUARDED_BY(mutex_);
  // By handle, which is the address of the object.
  std::map<void*, Owned<worker::Stream>> streams_ ABSL_GUARDED_BY(mutex_);
  std::map<void*, Owned<worker::Event>> events_ ABSL_GUARDED_BY(mutex_);
  std::map<worker::cuda::CUstream, Capture> captures_ ABSL_GUARDED_BY(mutex_);
  std::map<worker::cuda::CUgraph, std::unique_ptr<Graph>> graphs_ ABSL_GUARDED_BY(mutex_);
  std::map<worker::cuda::CUgraphExec, std::unique_ptr<Graph>> executables_ ABSL_GUARDED_BY(mutex_);
  std::set<worker::cuda::CUevent> captured_events_ ABSL_GUARDED_BY(mutex_);  // not by a graph
  std::set<worker::cuda::CUfunction> loaded_kernels_ ABSL_GUARDED_BY(mutex_);
  // Kernels and other work that may not have run.
  std::vector<std::unique_ptr<std::function<void()>>> launches_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<worker::Event>> events_of_all_ ABSL_GUARDED_BY(mutex_);  // of RunAll
  size_t modules_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t contexts_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t memory_ ABSL_GUARDED_BY(mutex_) = size_t{1} << 30;
  std::array<size_t, kMostDevices> used_ ABSL_GUARDED_BY(mutex_) = {};
  int device_count_ ABSL_GUARDED_BY(mutex_) = 1;
  std::set<std::pair<int, int>> cut_links_ ABSL_GUARDED_BY(mutex_);
  std::set<std::pair<int, int>> enabled_links_ ABSL_GUARDED_BY(mutex_);
  int64_t copies_to_device_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t allocations_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t pinned_allocations_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t copies_from_pageable_ ABSL_GUARDED_BY(mutex_) = 0;
  bool blocks_pageable_copies_ ABSL_GUARDED_BY(mutex_) = false;
  bool has_hung_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t omitted_copy_ ABSL_GUARDED_BY(mutex_) = -1;
  int64_t calls_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t failing_call_ ABSL_GUARDED_BY(mutex_) = -1;
  CUresult failing_result_ ABSL_GUARDED_BY(mutex_) = 0;
  std::optional<int> lost_device_ ABSL_GUARDED_BY(mutex_);
  std::string failed_call_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> calls_without_lock_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep::test
