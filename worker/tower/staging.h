// Staging gives tensors of the host places on a device, and copies between the two. On a host
// device a tensor is its own place, and nothing is copied.
#pragma once

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/tensor/tensor.h"
#include "worker/device/device.h"

namespace lockstep::worker {

// Not thread-safe. Call AddPlace for all tensors, then Allocate, then the other methods, which
// allocate nothing.
class Staging {
 public:
  explicit Staging(Device* device) : device_(device) {}  // outlives this

  enum Kind {
    kShared,  // on a host device the host's tensor itself
    kOwn,     // own memory there too
  };
  // Adds a place for a tensor of at most `most_bytes`. Returns the number of the place.
  int AddPlace(size_t most_bytes, Kind kind = kShared);
  absl::Status Allocate();

  // Returns `host` as the stream's ops can read it: itself, or a copy that this enqueues. INTERNAL
  // for more bytes than planned. Overwrites the contents of the place.
  absl::StatusOr<TensorView> ToDevice(int place, const TensorView& host, Stream* stream);
  // Enqueues a copy of `rows`, which are in other memory of the device, to the place. Returns the
  // copy. Not on a host device (CHECK). Errors as ToDevice.
  absl::StatusOr<TensorView> CopyOnDevice(int place, const TensorView& rows, Stream* stream);
  // Returns the view to which ops write before CopyToHost copies to `host`. Errors as ToDevice.
  absl::StatusOr<MutableTensorView> OnDevice(int place, const MutableTensorView& host) const;
  // Enqueues the copy. Does nothing if `device` is `host`.
  static void CopyToHost(const TensorView& device, const MutableTensorView& host, Stream* stream);

 private:
  struct Place {
    size_t offset = 0;  // in memory_
    size_t most_bytes = 0;
    bool shared = false;
  };

  absl::StatusOr<void*> AddressOf(int place, void* host, size_t bytes) const;

  Device* const device_;
  std::vector<Place> places_;
  size_t total_ = 0;
  DeviceBuffer memory_;
};

}  // namespace lockstep::worker
