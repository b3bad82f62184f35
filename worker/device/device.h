// What computes: a device with memory and streams of its own. A tower lives on one device; its ops
// are made for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/device/stream.h"

namespace lockstep::worker {

// Memory of a device. The device must still exist when it is freed.
using DeviceBuffer = std::unique_ptr<std::byte, std::function<void(std::byte*)>>;

// While it exists a device may copy directly from and to memory that is not its own. It ends before
// that memory does.
using HostRegistration = std::unique_ptr<void, std::function<void(void*)>>;

// What a device is used for, since it was opened. All 0 where nobody counts.
struct DeviceUse {
  uint64_t memory = 0;        // bytes that are allocated
  uint64_t memory_limit = 0;  // how many may be
  uint64_t to_device = 0;     // bytes copied
  uint64_t to_host = 0;
  uint64_t training_steps = 0;     // of towers, each on its own
  uint64_t graph_launches = 0;     // of work that streams have captured
  std::string graph_error;         // why a stream could not capture its work; empty: it could
  std::optional<int> utilization;  // percent of the last moments, by any process
  // Passes of convolutions that ops were made for, by the number of the library's engine.
  std::map<int64_t, uint64_t> convolutions;
};

struct StreamOptions {
  // Work starts without anybody waiting for it. A CPU gives such a stream a thread; the work of its
  // other streams runs on the thread that waits for it. Devices with queues of their own ignore it.
  bool background = false;
};

// Thread-safe. Outlives what it makes.
class Device {
 public:
  virtual ~Device() = default;

  virtual std::string name() const = 0;
  // Ops use host memory directly: nothing need be copied.
  virtual bool is_host() const = 0;

  // Binds the calling thread to this device: the ops that it makes or runs from now on use the
  // device's threads. Cheap. Called before ops are made; streams call it themselves.
  virtual void MakeCurrent() const = 0;

  // Not initialised, aligned for vector loops (Tensor::kAlignment). Only work on this device's
  // streams touches it, unless the device is the host. RESOURCE_EXHAUSTED when there is not so
  // much.
  virtual absl::StatusOr<DeviceBuffer> Allocate(size_t bytes) = 0;
  // Host memory from and to which the device copies directly. Errors alike.
  virtual absl::StatusOr<DeviceBuffer> AllocatePinned(size_t bytes) = 0;
  // Lets the device copy directly from and to memory that exists. Null where nothing need be done.
  virtual absl::StatusOr<HostRegistration> RegisterHost(std::span<std::byte> memory) = 0;
  // From memory that is mapped for reading alone.
  virtual absl::StatusOr<HostRegistration> RegisterReadOnly(std::span<const std::byte> memory) = 0;

  // Whether all of this memory of the host was made by AllocatePinned of a device of this kind, or
  // is registered with one. A copy to or from other memory may block until its stream has come to
  // it.
  virtual bool IsPinned(std::span<const std::byte>) const { return true; }

  virtual absl::StatusOr<std::unique_ptr<Stream>> CreateStream(const StreamOptions& options) = 0;
  virtual absl::StatusOr<std::unique_ptr<Event>> CreateEvent() = 0;

  // Whether this device reads the memory of `other`, which is of its kind, without the host in
  // between. The driver's error leaves the device as it is.
  virtual absl::StatusOr<bool> HasLinkTo(const Device& other) const { return &other == this; }

  // The first error of any work on this device. It stays; later work is skipped.
  virtual absl::Status status() const = 0;
  virtual DeviceUse use() const { return {}; }
  // A tower begins a training step, which use() counts.
  virtual void CountTrainingStep() {}
};

}  // namespace lockstep::worker
