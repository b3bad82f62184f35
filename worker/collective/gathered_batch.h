// Copies of a batch's tensors, by participant: what an all-reduce in memory works on, in place, and
// what becomes its result.
#pragma once

#include <vector>

#include "absl/types/span.h"
#include "worker/collective/cross_tower_ops.h"
#include "worker/collective/packing_plan.h"

namespace lockstep::worker {

class GatheredBatch {
 public:
  // One dense value on each device of each pair, and the same devices in all of them (CHECK).
  // Participants are in the order of their devices.
  explicit GatheredBatch(absl::Span<const ValueDestinationPair> pairs);

  absl::Span<const DeviceId> devices() const { return devices_; }
  absl::Span<const TensorSpec> specs() const { return specs_; }
  absl::Span<const std::vector<MutableTensorView>> tensors() const { return views_; }

  // For each pair its tensors on the destinations: each device's own; a device outside gets a copy
  // of the first one's. Once.
  std::vector<Mirrored> TakeResults(absl::Span<const ValueDestinationPair> pairs);

 private:
  std::vector<DeviceId> devices_;  // ascending
  std::vector<TensorSpec> specs_;
  std::vector<std::vector<Tensor>> tensors_;  // by participant, then pair
  std::vector<std::vector<MutableTensorView>> views_;
};

}  // namespace lockstep::worker
