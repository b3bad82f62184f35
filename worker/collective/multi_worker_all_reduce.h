// All-reduces over towers of several workers, by an all_reduce_spec: each tensor by the algorithm
// of its size. Tensors are packed among those of their range.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "common/reduction/all_reduce_spec.h"
#include "worker/collective/all_reduce.h"

namespace lockstep::worker {

struct MultiWorkerAllReduceOptions {
  Topology topology;
  AllReduceSpec all_reduce_spec;
  PackingOptions packing = PackingOptions::ForMultiWorker();
  bool has_gpus = false;  // the towers are on GPUs
};

class MultiWorkerAllReduce : public AllReduceBase {
 public:
  // INVALID_ARGUMENT: CheckAllReduceSpec refuses.
  static absl::StatusOr<std::unique_ptr<MultiWorkerAllReduce>> Create(
      const MultiWorkerAllReduceOptions& options);

  // `topology` must be that of the options. Vectors are in the order of the ranges; those of a
  // range take turns. Positions of tensors are those of the input.
  absl::StatusOr<BatchPlan> Plan(const Topology& topology,
                                 absl::Span<const TensorSpec> tensors) const override;

 protected:
  // Refuses devices that are not all towers of all workers: a mean divides by the destinations.
  absl::StatusOr<Topology> TopologyOf(absl::Span<const DeviceId> devices) const override;

 private:
  explicit MultiWorkerAllReduce(const MultiWorkerAllReduceOptions& options) : options_(options) {}

  const MultiWorkerAllReduceOptions options_;
};

// Devices in ascending order as workers 0, 1, ... with equally many towers each. INVALID_ARGUMENT
// where they are not.
absl::StatusOr<Topology> TopologyOfWorkers(absl::Span<const DeviceId> devices);

}  // namespace lockstep::worker
