// Adds all values on one device and copies the result to each destination. Sparse values take the
// gather path: indices and slices one after another, nothing is merged.
#pragma once

#include <functional>
#include <optional>

#include "worker/collective/cross_tower_ops.h"

namespace lockstep::worker {

// sum = the terms together. One dtype and shape, at least one term; `sum` is none of them.
using AccumulationFn =
    std::function<void(absl::Span<const TensorView> terms, const MutableTensorView& sum)>;

class ReductionToOneDevice : public CrossTowerOps {
 public:
  // `reduce_to_device` nullopt: the first destination. `accumulation_fn` null: addition from left
  // to right, in the order of the devices. It is not asked about sparse values.
  explicit ReductionToOneDevice(std::optional<DeviceId> reduce_to_device = std::nullopt,
                                AccumulationFn accumulation_fn = nullptr);

  // Where a reduction to these destinations adds.
  DeviceId Target(const Destinations& destinations) const;

 protected:
  // A MapOutput is added on its device first. A mean divides by the number of all values. Devices
  // without a value are skipped.
  absl::StatusOr<Mirrored> ReduceChecked(Aggregation aggregation, const PerDevice& value,
                                         const Destinations& destinations) override;
  absl::StatusOr<std::vector<Mirrored>> BatchReduceChecked(
      Aggregation aggregation, absl::Span<const ValueDestinationPair> pairs) override;

 private:
  const std::optional<DeviceId> reduce_to_device_;
  const AccumulationFn accumulation_fn_;
};

}  // namespace lockstep::worker
