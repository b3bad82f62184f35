#include "worker/collective/multi_worker_all_reduce.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/reduction/check_algorithm.h"

namespace lockstep::worker {
namespace {

std::string Describe(const Topology& topology) {
  return absl::StrCat(topology.workers, " workers with ", topology.towers, " towers each");
}

}  // namespace

absl::StatusOr<std::unique_ptr<MultiWorkerAllReduce>> MultiWorkerAllReduce::Create(
    const MultiWorkerAllReduceOptions& options) {
  LOCKSTEP_RETURN_IF_ERROR(
      CheckAllReduceSpec(options.all_reduce_spec, options.topology, options.has_gpus));
  return std::unique_ptr<MultiWorkerAllReduce>(new MultiWorkerAllReduce(options));
}

absl::StatusOr<BatchPlan> MultiWorkerAllReduce::Plan(const Topology& topology,
                                                     absl::Span<const TensorSpec> tensors) const {
  if (!(topology == options_.topology)) {
    return absl::InvalidArgumentError(
        absl::StrCat("MultiWorkerAllReduce: expected ", Describe(options_.topology), ", got ",
                     Describe(topology), ". Remedy: reduce over all towers of all workers"));
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckShapesAreKnown(tensors));
  const auto ranges = options_.all_reduce_spec.ranges();
  std::vector<ReductionVector> vectors;
  std::vector<Schedule> schedules;
  std::vector<ReductionAlgorithm> algorithms;
  for (size_t range = 0; range < ranges.size(); ++range) {
    std::vector<int> positions;
    std::vector<TensorSpec> own;
    for (size_t i = 0; i < tensors.size(); ++i) {
      const auto size = static_cast<int64_t>(SizeOf(tensors[i].dtype));
      const int64_t bytes = tensors[i].shape->num_elements() * size;
      if (options_.all_reduce_spec.RangeOf(bytes) != static_cast<int>(range)) continue;
      positions.push_back(static_cast<int>(i));
      own.push_back(tensors[i]);
    }
    if (own.empty()) continue;
    LOCKSTEP_ASSIGN_OR_RETURN(const PackingPlan packing, PlanPacking(options_.packing, own));
    LOCKSTEP_ASSIGN_OR_RETURN(
        BatchPlan plan,
        MakeBatchPlan(packing, {ranges[range].algorithm, topology, ranges[range].shards}));
    for (ReductionVector vector : packing.vectors()) {
      for (PackedSegment& segment : vector.segments) segment.tensor = positions[segment.tensor];
      vectors.push_back(std::move(vector));
    }
    for (Schedule& schedule : plan.schedules) schedules.push_back(std::move(schedule));
    algorithms.insert(algorithms.end(), plan.algorithms.begin(), plan.algorithms.end());
  }
  return BatchPlan{PackingPlan(std::move(vectors)), std::move(schedules), std::move(algorithms)};
}

absl::StatusOr<Topology> MultiWorkerAllReduce::TopologyOf(
    absl::Span<const DeviceId> devices) const {
  LOCKSTEP_ASSIGN_OR_RETURN(const Topology topology, TopologyOfWorkers(devices));
  if (topology == options_.topology) return topology;
  return absl::InvalidArgumentError(absl::StrCat(
      "MultiWorkerAllReduce: expected devices of ", Describe(options_.topology), ", got those of ",
      Describe(topology), ". Remedy: name all towers of all workers as destinations"));
}

absl::StatusOr<Topology> TopologyOfWorkers(absl::Span<const DeviceId> devices) {
  Topology topology{devices.back().worker + 1, 0};
  for (const DeviceId& device : devices) {
    if (device.worker == 0) ++topology.towers;
  }
  const size_t towers = topology.towers;
  for (size_t i = 0; i < devices.size(); ++i) {
    if (towers > 0 && devices[i].worker == static_cast<int>(i / towers)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "devices of several workers: expected equally many of worker 0, 1, ..., got ",
        ToString(devices[i]), " at position ", i, ". Remedy: give every worker the same towers"));
  }
  if (devices.size() == towers * topology.workers) return topology;
  return absl::InvalidArgumentError(absl::StrCat("devices of several workers: worker ",
                                                 topology.workers - 1, " has fewer than ", towers,
                                                 ". Remedy: give every worker the same towers"));
}

}  // namespace lockstep::worker
