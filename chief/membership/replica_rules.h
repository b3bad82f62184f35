// Chooses the replicas that share the global batch of an elastic job (sync.min_replicas). Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/replicas/replica_view.h"

namespace lockstep::chief {

struct ReplicaRules {
  int64_t min_replicas = 1;
  std::optional<uint32_t> aggregate;  // replicas_to_aggregate; none: every replica of a view
  int64_t global_batch = 1;
  int64_t towers = 1;  // of each worker
};

// Returns the replicas of a view, ascending: the largest number of `candidates` that divides the
// global batch evenly. It takes those of `current` first, then the lowest indices. Empty if fewer
// than min_replicas could take part. `candidates` ascend, each once; `current` may be null.
std::vector<WorkerIndex> ChooseReplicas(const ReplicaRules& rules,
                                        absl::Span<const WorkerIndex> candidates,
                                        const ReplicaView* current);

// Returns the view of these workers. `workers` is not empty (CHECK).
ReplicaView MakeReplicaView(const ReplicaRules& rules, uint64_t number, GlobalStep first,
                            std::vector<WorkerIndex> workers);

}  // namespace lockstep::chief
