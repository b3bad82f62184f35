// All-reduces of the towers of one worker. What is no all-reduce goes by ReductionToOneDevice:
// other destinations than sources, sparse values, a MapOutput.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "worker/collective/batch_plan.h"
#include "worker/collective/cross_tower_ops.h"
#include "worker/collective/reduction_to_one_device.h"

namespace lockstep::worker {

// The part that AllReduce and MultiWorkerAllReduce share: when there is an all-reduce, and the
// warnings when there is not.
class AllReduceBase : public CrossTowerOps {
 public:
  // Of these tensors, over towers in the order of their ranks. INVALID_ARGUMENT: a shape is
  // unknown; the packer or the algorithm refuses.
  virtual absl::StatusOr<BatchPlan> Plan(const Topology& topology,
                                         absl::Span<const TensorSpec> tensors) const = 0;

 protected:
  // Of distinct devices in ascending order.
  virtual absl::StatusOr<Topology> TopologyOf(absl::Span<const DeviceId> devices) const = 0;

  absl::StatusOr<Mirrored> ReduceChecked(Aggregation aggregation, const PerDevice& value,
                                         const Destinations& destinations) override;
  absl::StatusOr<std::vector<Mirrored>> BatchReduceChecked(
      Aggregation aggregation, absl::Span<const ValueDestinationPair> pairs) override;

 private:
  absl::StatusOr<std::vector<Mirrored>> BatchAllReduce(
      Aggregation aggregation, absl::Span<const ValueDestinationPair> pairs);

  ReductionToOneDevice to_one_;
};

struct AllReduceOptions {
  std::string all_reduce_alg = "nccl";  // or "hierarchical_copy"
  PackingOptions packing;
  bool has_gpus = false;  // the towers are on GPUs
};

class AllReduce : public AllReduceBase {
 public:
  // INVALID_ARGUMENT: another algorithm; nccl without GPUs.
  static absl::StatusOr<std::unique_ptr<AllReduce>> Create(const AllReduceOptions& options);

  absl::StatusOr<BatchPlan> Plan(const Topology& topology,
                                 absl::Span<const TensorSpec> tensors) const override;

 protected:
  absl::StatusOr<Topology> TopologyOf(absl::Span<const DeviceId> devices) const override;

 private:
  AllReduce(ReductionAlgorithm algorithm, const PackingOptions& packing)
      : algorithm_(algorithm), packing_(packing) {}

  const ReductionAlgorithm algorithm_;
  const PackingOptions packing_;
};

}  // namespace lockstep::worker
