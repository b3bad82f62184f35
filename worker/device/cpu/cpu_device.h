// The host's own processor, used by a fixed number of OpenMP threads.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "worker/device/device.h"

namespace lockstep::worker {

class CpuDevice : public Device {
 public:
  // `threads` >= 1: of each op, the calling one included. Every thread that runs ops has a team of
  // its own, so D background streams use D * threads.
  explicit CpuDevice(int threads);

  int threads() const { return threads_; }
  bool has_failed() const { return has_failed_.load(std::memory_order_acquire); }
  // Keeps the first one.
  void Fail(absl::Status error);

  std::string name() const override { return "cpu"; }
  bool is_host() const override { return true; }
  void MakeCurrent() const override;
  absl::StatusOr<DeviceBuffer> Allocate(size_t bytes) override;
  absl::StatusOr<DeviceBuffer> AllocatePinned(size_t bytes) override { return Allocate(bytes); }
  absl::StatusOr<HostRegistration> RegisterReadOnly(std::span<const std::byte>) override {
    return HostRegistration();
  }
  absl::StatusOr<HostRegistration> RegisterHost(std::span<std::byte>) override {
    return HostRegistration();
  }
  absl::StatusOr<std::unique_ptr<Stream>> CreateStream(const StreamOptions& options) override;
  absl::StatusOr<std::unique_ptr<Event>> CreateEvent() override;
  absl::Status status() const override;

 private:
  const int threads_;
  std::atomic<bool> has_failed_ = false;
  mutable absl::Mutex mutex_;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep::worker
