// choose_the_best: which cross-tower op suits the devices of a worker, by how they are linked.
#pragma once

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "worker/collective/device_values.h"

namespace lockstep::worker {

struct MachineDescription {
  std::vector<DeviceId> visible;
  // By position of the requested devices: positions of those that it can access directly.
  std::vector<std::vector<int>> links;
};

enum class CrossTowerOpsKind { kReductionToOneDevice, kNccl, kHierarchicalCopy };
// "reduction_to_one_device", "nccl", "hierarchical_copy".
absl::string_view Name(CrossTowerOpsKind kind);

struct CrossTowerOpsChoice {
  CrossTowerOpsKind kind = CrossTowerOpsKind::kReductionToOneDevice;
  int num_packs = 0;
  std::string reason;                 // a sentence without its dot, for log and status
  std::vector<std::string> warnings;  // what the user may not have meant
  std::vector<DeviceId> unused;       // visible, but not requested
};

// A device that is not visible, or that is no GPU: reduction to one device. At least 8 GPUs that
// are linked as those of a DGX-1: hierarchical copy, a pack per device. Otherwise nccl, one pack.
CrossTowerOpsChoice ChooseTheBest(absl::Span<const DeviceId> requested,
                                  const MachineDescription& machine);

}  // namespace lockstep::worker
