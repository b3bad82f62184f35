// What computes: a device with memory of its own. A tower lives on one device; its ops are made for
// it.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace lockstep::worker {

// Memory of a device, freed with it. On a CPU it can be read and written by anyone; elsewhere only
// ops of that device touch it. Outlives nothing: the device must still exist when it is freed.
using DeviceMemory = std::unique_ptr<std::byte, void (*)(std::byte*)>;

// Const after construction; thread-safe.
class Device {
 public:
  virtual ~Device() = default;

  virtual std::string name() const = 0;

  // Binds the calling thread to this device: the ops that it makes or runs from now on use the
  // device's threads. Cheap; called at the start of each pass.
  virtual void MakeCurrent() const = 0;

  // Aligned for vector loops (Tensor::kAlignment), not initialised. RESOURCE_EXHAUSTED when there
  // is not so much.
  virtual absl::StatusOr<DeviceMemory> Allocate(size_t bytes) const = 0;
};

}  // namespace lockstep::worker
