#include "worker/tower/for_each_layer.h"

#include "common/base/status_macros.h"

namespace lockstep::worker {

absl::Status ForEachLayer(std::span<const int> descending, std::span<const TowerGradient> of_tower,
                          std::vector<int>* group,
                          absl::FunctionRef<absl::Status(std::span<const int>)> tell) {
  group->clear();
  for (const int variable : descending) {
    if (!group->empty() && of_tower[group->front()].ready != of_tower[variable].ready) {
      LOCKSTEP_RETURN_IF_ERROR(tell(*group));
      group->clear();
    }
    group->push_back(variable);
  }
  return group->empty() ? absl::OkStatus() : tell(*group);
}

}  // namespace lockstep::worker
