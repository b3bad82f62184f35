#include "chief/membership/replica_rules.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/replicas/fitting_replicas.h"

namespace lockstep::chief {

std::vector<WorkerIndex> ChooseReplicas(const ReplicaRules& rules,
                                        absl::Span<const WorkerIndex> candidates,
                                        const ReplicaView* current) {
  const int64_t fitting = MostFittingReplicas(rules.global_batch, rules.towers, rules.min_replicas,
                                              static_cast<int64_t>(candidates.size()));
  std::vector<WorkerIndex> chosen(candidates.begin(), candidates.end());
  std::stable_partition(chosen.begin(), chosen.end(), [current](WorkerIndex worker) {
    return current != nullptr && current->Has(worker);
  });
  chosen.resize(static_cast<size_t>(fitting));
  std::ranges::sort(chosen);
  return chosen;
}

ReplicaView MakeReplicaView(const ReplicaRules& rules, uint64_t number, GlobalStep first,
                            std::vector<WorkerIndex> workers) {
  LOCKSTEP_CHECK(!workers.empty());
  const auto total = static_cast<uint32_t>(workers.size());
  return {.number = number,
          .first = first,
          .workers = std::move(workers),
          .aggregate = std::min(rules.aggregate.value_or(total), total)};
}

}  // namespace lockstep::chief
