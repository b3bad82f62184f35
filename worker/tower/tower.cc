#include "worker/tower/tower.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/tower/model_tower.h"

namespace lockstep::worker {

absl::StatusOr<std::unique_ptr<Tower>> Tower::Create(const ModelGraph& graph, Device* device,
                                                     const OpTable& ops,
                                                     const TowerOptions& options) {
  for (const int64_t batch : options.batches) {
    if (batch >= 1) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("batch of a tower: expected at least 1, got ", batch));
  }
  if (options.batches.empty()) {
    return absl::InvalidArgumentError("batch of a tower: expected at least one size, got none");
  }
  auto tower = std::make_unique<ModelTower>(graph, device, ops, options);
  LOCKSTEP_RETURN_IF_ERROR(tower->Prepare());
  return tower;
}

}  // namespace lockstep::worker
