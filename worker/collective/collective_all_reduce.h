// All-reduces by keyed collectives. Consecutive gradients are issued in scopes of
// all_reduce_merge_scope, which groups them and changes no value. Sparse values are refused.
//
// Across processes: a Participant over schedules of ReductionAlgorithm::kCollective for each
// tensor, with the CollectiveCall of Calls in every message.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/collective/batch_plan.h"
#include "worker/collective/collective_keys.h"
#include "worker/collective/cross_tower_ops.h"

namespace lockstep::worker {

// Positions [first, first + count) of a list.
struct MergeScope {
  size_t first = 0;
  size_t count = 0;

  friend bool operator==(const MergeScope&, const MergeScope&) = default;
};

// Chunks of `scope`; the last one is shorter. `scope` is at least 1 (CHECK).
std::vector<MergeScope> MergeScopes(size_t tensors, int scope);

class CollectiveAllReduce : public CrossTowerOps {
 public:
  static constexpr int kMergeScope = 32;

  // INVALID_ARGUMENT: a scope < 1.
  static absl::StatusOr<std::unique_ptr<CollectiveAllReduce>> Create(
      int all_reduce_merge_scope = kMergeScope);

  int all_reduce_merge_scope() const { return scope_; }
  // The calls for these tensors, in the order in which they are issued. Numbers are spent.
  std::vector<CollectiveCall> Calls(absl::Span<const DeviceId> group,
                                    absl::Span<const TensorSpec> tensors);

 protected:
  // Over the sources, of all workers; a mean divides by their number. Each destination takes its
  // own; one outside the group gets a copy of the first. A group of 1 returns its input.
  absl::StatusOr<Mirrored> ReduceChecked(Aggregation aggregation, const PerDevice& value,
                                         const Destinations& destinations) override;
  // INVALID_ARGUMENT for the whole batch where a value is sparse.
  absl::StatusOr<std::vector<Mirrored>> BatchReduceChecked(
      Aggregation aggregation, absl::Span<const ValueDestinationPair> pairs) override;

 private:
  explicit CollectiveAllReduce(int scope) : scope_(scope) {}

  const int scope_;
  CollectiveKeys collective_keys_;
};

}  // namespace lockstep::worker
