#include "worker/collective/collective_all_reduce.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "worker/collective/gathered_batch.h"

namespace lockstep::worker {
namespace {

absl::Status CheckValue(const PerDevice& value) {
  if (value.has_sparse()) {
    return absl::InvalidArgumentError(
        "`IndexSlices` is not supported for Collective All-Reduce. Remedy: choose another "
        "cross-tower op, or parameter_server");
  }
  if (value.has_one_value_each()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "Collective All-Reduce: expected one value on each device, got none or several. Remedy: add "
      "those of a device first");
}

}  // namespace

std::vector<MergeScope> MergeScopes(size_t tensors, int scope) {
  LOCKSTEP_CHECK(scope >= 1);
  std::vector<MergeScope> scopes;
  const auto most = static_cast<size_t>(scope);
  for (size_t first = 0; first < tensors; first += most) {
    scopes.push_back({first, std::min(most, tensors - first)});
  }
  return scopes;
}

absl::StatusOr<std::unique_ptr<CollectiveAllReduce>> CollectiveAllReduce::Create(
    int all_reduce_merge_scope) {
  if (all_reduce_merge_scope < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("all_reduce_merge_scope: expected at least 1, got ", all_reduce_merge_scope,
                     ". Remedy: leave it out for ", kMergeScope));
  }
  return std::unique_ptr<CollectiveAllReduce>(new CollectiveAllReduce(all_reduce_merge_scope));
}

std::vector<CollectiveCall> CollectiveAllReduce::Calls(absl::Span<const DeviceId> group,
                                                       absl::Span<const TensorSpec> tensors) {
  std::vector<CollectiveCall> calls;
  for (const TensorSpec& tensor : tensors) {
    LOCKSTEP_CHECK(tensor.shape.has_value());
    calls.push_back({collective_keys_.Next(group), ReductionAlgorithm::kCollective,
                     tensor.shape->num_elements()});
  }
  return calls;
}

absl::StatusOr<Mirrored> CollectiveAllReduce::ReduceChecked(Aggregation aggregation,
                                                            const PerDevice& value,
                                                            const Destinations& destinations) {
  LOCKSTEP_RETURN_IF_ERROR(CheckValue(value));
  const ValueDestinationPair pair{value, destinations};
  GatheredBatch batch({&pair, 1});
  const int count = static_cast<int>(batch.devices().size());
  const Topology topology{1, count};
  LOCKSTEP_ASSIGN_OR_RETURN(const BatchPlan plan,
                            MakeBatchPlan(PackingPlan::Unpacked(batch.specs()),
                                          {ReductionAlgorithm::kCollective, topology}));
  RunBatchInMemory(plan, batch.tensors(), aggregation == Aggregation::kMean ? count : 1);
  return std::move(batch.TakeResults({&pair, 1})[0]);
}

absl::StatusOr<std::vector<Mirrored>> CollectiveAllReduce::BatchReduceChecked(
    Aggregation aggregation, absl::Span<const ValueDestinationPair> pairs) {
  for (const ValueDestinationPair& pair : pairs) LOCKSTEP_RETURN_IF_ERROR(CheckValue(pair.value));
  std::vector<Mirrored> results;
  for (const MergeScope& scope : MergeScopes(pairs.size(), scope_)) {
    LOCKSTEP_ASSIGN_OR_RETURN(std::vector<Mirrored> reduced,
                              ReduceEach(aggregation, pairs.subspan(scope.first, scope.count)));
    std::ranges::move(reduced, std::back_inserter(results));
  }
  return results;
}

}  // namespace lockstep::worker
