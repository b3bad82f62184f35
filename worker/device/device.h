// Device computes: it has its own memory and streams. A tower lives on one device; its ops are made
// for that device.
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

// While it exists, a device may copy directly from and to memory that is not its own. The memory
// outlives the registration.
using HostRegistration = std::unique_ptr<void, std::function<void(void*)>>;

// Usage counters of a device since it was opened. All 0 for a device that does not count.
struct DeviceUse {
  uint64_t memory = 0;        // bytes that are allocated
  uint64_t memory_limit = 0;  // the most bytes that may be allocated
  uint64_t to_device = 0;     // bytes copied
  uint64_t to_host = 0;
  uint64_t training_steps = 0;     // of towers, each on its own
  uint64_t graph_launches = 0;     // of work that streams have captured
  std::string graph_error;         // of a stream that failed to capture its work; empty: none
  std::optional<int> utilization;  // percent of the last moments, by any process
  // Convolution passes for which ops were made, by the number of the library's engine.
  std::map<int64_t, uint64_t> convolutions;
};

struct StreamOptions {
  // Work starts even if no thread waits for it. A CPU gives such a stream its own thread; the work
  // of its other streams runs on the thread that waits. Devices with their own queues ignore it.
  bool background = false;
};

// Thread-safe. Outlives the objects that it makes.
class Device {
 public:
  virtual ~Device() = default;

  virtual std::string name() const = 0;
  // True if ops use host memory directly, without copies.
  virtual bool is_host() const = 0;

  // Binds the calling thread to this device: the ops that it makes or runs from now on use the
  // device's threads. Cheap. Called before ops are made; streams call it themselves.
  virtual void MakeCurrent() const = 0;

  // Not initialised, aligned for vector loops (Tensor::kAlignment). Only work on this device's
  // streams touches it, unless the device is the host. RESOURCE_EXHAUSTED: not enough memory.
  virtual absl::StatusOr<DeviceBuffer> Allocate(size_t bytes) = 0;
  // Allocates host memory from and to which the device copies directly. Errors as Allocate.
  virtual absl::StatusOr<DeviceBuffer> AllocatePinned(size_t bytes) = 0;
  // Lets the device copy directly from and to existing memory. Null if no registration is needed.
  virtual absl::StatusOr<HostRegistration> RegisterHost(std::span<std::byte> memory) = 0;
  // Like RegisterHost, for copies from memory that is mapped read-only.
  virtual absl::StatusOr<HostRegistration> RegisterReadOnly(std::span<const std::byte> memory) = 0;

  // Returns whether all of this host memory comes from AllocatePinned of a device of this kind, or
  // is registered with one. A copy to or from other memory may block until its stream reaches it.
  virtual bool IsPinned(std::span<const std::byte>) const { return true; }

  virtual absl::StatusOr<std::unique_ptr<Stream>> CreateStream(const StreamOptions& options) = 0;
  virtual absl::StatusOr<std::unique_ptr<Event>> CreateEvent() = 0;

  // Returns whether this device reads the memory of `other`, a device of its kind, without the
  // host. An error of the driver does not change the status of the device.
  virtual absl::StatusOr<bool> HasLinkTo(const Device& other) const { return &other == this; }

  // The first error of any work on this device. It stays; later work is skipped.
  virtual absl::Status status() const = 0;
  virtual DeviceUse use() const { return {}; }
  // Called when a tower begins a training step. use() counts the calls.
  virtual void CountTrainingStep() {}
};

}  // namespace lockstep::worker
