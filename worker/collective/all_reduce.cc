#include "worker/collective/all_reduce.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/annotate.h"
#include "common/base/status_macros.h"
#include "common/reduction/check_algorithm.h"
#include "worker/collective/gathered_batch.h"

namespace lockstep::worker {

absl::StatusOr<Mirrored> AllReduceBase::ReduceChecked(Aggregation aggregation,
                                                      const PerDevice& value,
                                                      const Destinations& destinations) {
  const bool is_sparse = value.has_sparse();
  if (!is_sparse && value.has_one_value_each() &&
      AreSameSets(value.devices(), destinations.devices)) {
    const ValueDestinationPair pair{value, destinations};
    LOCKSTEP_ASSIGN_OR_RETURN(std::vector<Mirrored> results,
                              BatchAllReduce(aggregation, {&pair, 1}));
    return std::move(results[0]);
  }
  if (is_sparse) Warn("Efficient allreduce is not supported for IndexedSlices.");
  return to_one_.Reduce(aggregation, value, destinations);
}

absl::StatusOr<std::vector<Mirrored>> AllReduceBase::BatchReduceChecked(
    Aggregation aggregation, absl::Span<const ValueDestinationPair> pairs) {
  const bool match = AllDevicesMatch(pairs);
  const bool are_dense = std::ranges::all_of(pairs, [](const ValueDestinationPair& pair) {
    return !pair.value.has_sparse() && pair.value.has_one_value_each();
  });
  if (match && are_dense) return BatchAllReduce(aggregation, pairs);
  if (!match) {
    Warn("Efficient batch_reduce is not supported if destinations are different.");
  }
  return ReduceEach(aggregation, pairs);
}

absl::StatusOr<std::vector<Mirrored>> AllReduceBase::BatchAllReduce(
    Aggregation aggregation, absl::Span<const ValueDestinationPair> pairs) {
  GatheredBatch batch(pairs);
  LOCKSTEP_ASSIGN_OR_RETURN(const Topology topology, TopologyOf(batch.devices()));
  LOCKSTEP_ASSIGN_OR_RETURN(const BatchPlan plan, Plan(topology, batch.specs()));
  const int count = static_cast<int>(batch.devices().size());
  RunBatchInMemory(plan, batch.tensors(), aggregation == Aggregation::kMean ? count : 1);
  return batch.TakeResults(pairs);
}

absl::StatusOr<std::unique_ptr<AllReduce>> AllReduce::Create(const AllReduceOptions& options) {
  const absl::StatusOr<ReductionAlgorithm> algorithm =
      ParseAllReduceAlgorithm(options.all_reduce_alg, options.has_gpus);
  if (!algorithm.ok()) return Annotate(algorithm.status(), "all_reduce_alg");
  return std::unique_ptr<AllReduce>(new AllReduce(*algorithm, options.packing));
}

absl::StatusOr<BatchPlan> AllReduce::Plan(const Topology& topology,
                                          absl::Span<const TensorSpec> tensors) const {
  LOCKSTEP_ASSIGN_OR_RETURN(const PackingPlan packing, PlanPacking(packing_, tensors));
  return MakeBatchPlan(packing, {algorithm_, topology});
}

absl::StatusOr<Topology> AllReduce::TopologyOf(absl::Span<const DeviceId> devices) const {
  if (devices.front().worker != devices.back().worker) {
    return absl::InvalidArgumentError(
        absl::StrCat("AllReduce: expected devices of one worker, got ", ToString(devices.front()),
                     " and ", ToString(devices.back()), ". Remedy: use MultiWorkerAllReduce"));
  }
  return Topology{1, static_cast<int>(devices.size())};
}

}  // namespace lockstep::worker
