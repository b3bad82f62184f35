// A device that the project does not have: memory apart from the host's, and streams that do their
// work at once. It runs the ops of a CPU.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "worker/device/cpu/cpu_device.h"
#include "worker/device/device.h"
#include "worker/device/host_stream.h"

namespace lockstep::extend {

// Used by one thread.
class EagerDevice : public worker::Device {
 public:
  std::string name() const override { return "eager"; }
  bool is_host() const override { return false; }
  void MakeCurrent() const override { cpu_.MakeCurrent(); }
  absl::StatusOr<worker::DeviceBuffer> Allocate(size_t bytes) override {
    return cpu_.Allocate(bytes);
  }
  absl::StatusOr<worker::DeviceBuffer> AllocatePinned(size_t bytes) override {
    return cpu_.Allocate(bytes);
  }
  absl::StatusOr<worker::HostRegistration> RegisterReadOnly(std::span<const std::byte>) override {
    return worker::HostRegistration();
  }
  absl::StatusOr<worker::HostRegistration> RegisterHost(std::span<std::byte>) override {
    return worker::HostRegistration();
  }
  absl::StatusOr<std::unique_ptr<worker::Stream>> CreateStream(
      const worker::StreamOptions&) override;
  absl::StatusOr<std::unique_ptr<worker::Event>> CreateEvent() override;
  absl::Status status() const override { return status_; }

  void Run(const worker::HostTask& task);

 private:
  worker::CpuDevice cpu_{1};
  absl::Status status_;
};

}  // namespace lockstep::extend
