// Where the tensors of the host lie on a device: the one place that copies between the two. On a
// host device a tensor is its own place, and nothing is copied.
#pragma once

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/tensor/tensor.h"
#include "worker/device/device.h"

namespace lockstep::worker {

// Not thread-safe. First AddPlace for everything, then Allocate, then the rest, which allocates
// nothing.
class Staging {
 public:
  explicit Staging(Device* device) : device_(device) {}  // outlives this

  enum Kind {
    kShared,  // on a host device the host's tensor itself
    kOwn,     // memory of its own there too
  };
  // For a tensor of at most so many bytes. Returns the number of the place.
  int AddPlace(size_t most_bytes, Kind kind = kShared);
  absl::Status Allocate();

  // `host` where the stream's ops can read it: itself, or a copy that this enqueues. INTERNAL for
  // more bytes than planned. Overwrites what the place held.
  absl::StatusOr<TensorView> ToDevice(int place, const TensorView& host, Stream* stream);
  // A copy in the place of `rows`, which are in other memory of the device; enqueues it. Not on a
  // host device. Errors alike.
  absl::StatusOr<TensorView> CopyOnDevice(int place, const TensorView& rows, Stream* stream);
  // Where ops write what CopyToHost brings to `host`. Errors alike.
  absl::StatusOr<MutableTensorView> OnDevice(int place, const MutableTensorView& host) const;
  // Nothing where `device` is `host`.
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
