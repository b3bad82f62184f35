// One GPU, through CUDA's driver.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"
#include "worker/device/cuda/driver.h"
#include "worker/device/cuda/gpu_monitor.h"
#include "worker/device/device.h"

namespace lockstep::worker::cuda {

struct CudaDeviceOptions {
  // Of all that Allocate has given out at a time, in bytes; 0: what the GPU has.
  uint64_t memory_limit = 0;
  // Where a library has several engines for an op, they are timed when the op is made.
  bool autotune = false;
};

// Uses the primary context of the GPU, as the libraries of CUDA do.
class CudaDevice : public Device {
 public:
  // `driver` outlives it. `ordinal`: in [0, driver->device_count()). Errors have the exit code of a
  // failed device. FAILED_PRECONDITION with the remedy: the GPU works, but takes no further
  // process.
  static absl::StatusOr<std::unique_ptr<CudaDevice>> Create(const Driver* driver, int ordinal,
                                                            const CudaDeviceOptions& options = {});
  ~CudaDevice() override;

  // Has a monitor look after the GPU: errors of its hardware are the device's then. `nvml` and
  // `on_stuck` as GpuMonitor has them. The first call counts; before other threads use the device.
  void Watch(const NvmlLibrary* nvml, std::function<void()> on_stuck);

  const Driver& driver() const { return *driver_; }
  int ordinal() const { return ordinal_; }
  bool autotune() const { return options_.autotune; }
  bool has_failed() const { return has_failed_.load(std::memory_order_acquire); }
  // Keeps the first error. `call`: "cuMemcpyHtoDAsync of 8 bytes".
  void Fail(CUresult result, absl::string_view call) const;
  // The error of a call that prepares work, of a GPU that works: with the memory that is free, the
  // remedy for too little of it, and a further one (", or ..."; empty: none). It has the exit code
  // of a failed device. The device's own error where it has failed. The device is current.
  absl::Status Refused(absl::StatusCode code, const absl::Status& call,
                       absl::string_view remedy) const;
  // Bytes that a stream copies. Any thread.
  void CountToDevice(size_t bytes) const { to_device_.fetch_add(bytes, std::memory_order_relaxed); }
  void CountToHost(size_t bytes) const { to_host_.fetch_add(bytes, std::memory_order_relaxed); }
  void CountGraphLaunch() const { graph_launches_.fetch_add(1, std::memory_order_relaxed); }
  // An op is made that has `engine` of cuDNN compute one pass of a convolution. Any thread.
  void CountConvolution(int64_t engine);
  // A stream could not capture its work. The first call says so in the log. Any thread.
  void ReportNoGraph(const absl::Status& why) const;
  // False once the host could not pin the ring of one stream: the others do not ask. Any thread.
  bool can_pin_rings() const { return can_pin_rings_.load(std::memory_order_relaxed); }
  // The host cannot pin a stream's ring. The first call says so in the log. Any thread.
  void ReportNoRing(const absl::Status& why) const;
  // Blocks until no work of this device runs, also after an error. For a device that has failed: an
  // event may never be reached there. Not by a thread whose stream captures.
  void WaitForAll() const ABSL_LOCKS_EXCLUDED(capture_mutex_);
  // Runs `call` with the device current and while none of its streams captures. For calls of
  // libraries that may wait for all work of the device. Not by a thread whose stream captures.
  void CallOutsideCaptures(absl::FunctionRef<void()> call) const
      ABSL_LOCKS_EXCLUDED(capture_mutex_);
  // Streams hold it, shared, while they capture: the driver refuses to wait for a context then, and
  // the capture is lost. CallOutsideCaptures holds it alone.
  absl::Mutex* capture_mutex() const ABSL_LOCK_RETURNED(capture_mutex_) { return &capture_mutex_; }

  // Lets this GPU copy from the memory of `peer` without the host in between. Errors, which leave
  // the device as it is: the two have no such link, or the driver refuses. Copies go through the
  // host then.
  absl::Status EnablePeerAccess(const CudaDevice& peer);

  std::string name() const override { return name_; }
  bool is_host() const override { return false; }
  void MakeCurrent() const override;
  absl::StatusOr<DeviceBuffer> Allocate(size_t bytes) override;
  absl::StatusOr<DeviceBuffer> AllocatePinned(size_t bytes) override;
  absl::StatusOr<HostRegistration> RegisterHost(std::span<std::byte> memory) override;
  absl::StatusOr<HostRegistration> RegisterReadOnly(std::span<const std::byte> memory) override;
  bool IsPinned(std::span<const std::byte> memory) const override {
    return driver_->pinned_memory()->Contains(memory);
  }
  absl::StatusOr<std::unique_ptr<Stream>> CreateStream(const StreamOptions& options) override;
  absl::StatusOr<std::unique_ptr<Event>> CreateEvent() override;
  absl::StatusOr<bool> HasLinkTo(const Device& other) const override;
  absl::Status status() const override;
  DeviceUse use() const override;
  void CountTrainingStep() override { training_steps_.fetch_add(1, std::memory_order_relaxed); }

 private:
  CudaDevice(const Driver* driver, int ordinal, const CudaDeviceOptions& options);

  absl::Status Open(int ordinal);
  absl::Status RetainContext();
  absl::StatusOr<HostRegistration> Register(void* memory, size_t bytes, unsigned int flags);
  // OK, or the error that has become the device's.
  absl::Status Check(CUresult result, absl::string_view call) const;
  // "12 of its 1000 bytes are free".
  absl::StatusOr<std::string> DescribeFreeMemory() const;
  absl::Status OutOfDeviceMemory(size_t bytes) const;
  void FailWith(absl::Status error) const;
  // False: the limit would be exceeded.
  bool Reserve(size_t bytes);

  const Driver* const driver_;
  const int ordinal_;
  const CudaDeviceOptions options_;
  std::string name_;  // "cuda:0"
  CUdevice handle_ = 0;
  CUcontext context_ = nullptr;  // null: not retained
  uint64_t total_memory_ = 0;
  std::atomic<uint64_t> allocated_ = 0;
  mutable std::atomic<uint64_t> to_device_ = 0;
  mutable std::atomic<uint64_t> to_host_ = 0;
  std::atomic<uint64_t> training_steps_ = 0;
  mutable std::atomic<uint64_t> graph_launches_ = 0;
  mutable std::atomic<bool> can_pin_rings_ = true;
  mutable std::atomic<bool> has_failed_ = false;
  mutable absl::Mutex capture_mutex_;
  mutable absl::Mutex mutex_;
  mutable absl::Status status_ ABSL_GUARDED_BY(mutex_);
  mutable std::string graph_error_ ABSL_GUARDED_BY(mutex_);  // the first; empty: none
  std::map<int64_t, uint64_t> convolutions_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<GpuMonitor> monitor_;  // may be null; last: its thread uses all above
};

}  // namespace lockstep::worker::cuda
