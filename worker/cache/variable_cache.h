// The worker's copy of all variables at one version. Each of its users (training, evaluation) has
// its own.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/client/ps_client.h"
#include "common/client/variable_puller.h"
#include "common/tensor/tensor.h"
#include "proto/tensor.pb.h"

namespace lockstep::worker {

// Not thread-safe.
class VariableCache {
 public:
  // kAverages: the moving averages of the variables that have one, of versions that are kept.
  enum Contents { kValues, kAverages };

  // `shards[k]` talks to ps k and outlives the cache. INVALID_ARGUMENT: a placement that does not
  // fit the shards.
  static absl::StatusOr<std::unique_ptr<VariableCache>> Create(const Placement& placement,
                                                               std::span<PsData* const> shards,
                                                               const WorkerIdentity& identity,
                                                               Contents contents = kValues);

  // Brings every variable to `version`, from all shards at once, and blocks until all are here.
  // Returns the newest version that any shard answered with: higher than asked for when the version
  // is kept no longer somewhere (then a gradient computed from the mixture would be stale anyway).
  absl::StatusOr<GlobalStep> Fetch(GlobalStep version);

  // In the placement's order. Valid until the cache goes; the contents change with Fetch.
  std::span<const TensorView> values() const { return views_; }

 private:
  VariableCache() = default;

  std::vector<Tensor> values_;
  std::vector<TensorView> views_;
  std::vector<std::unique_ptr<VariablePuller>> pullers_;  // of the shards that have variables
};

}  // namespace lockstep::worker
