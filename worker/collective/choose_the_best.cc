#include "worker/collective/choose_the_best.h"

#include <algorithm>
#include <array>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/check.h"

namespace lockstep::worker {
namespace {

constexpr size_t kDgx1Gpus = 8;
// NVLink of a DGX-1: GPU i can access these.
constexpr std::array<std::array<int, 4>, kDgx1Gpus> kDgx1Links = {{{1, 2, 3, 4},
                                                                   {0, 2, 3, 5},
                                                                   {0, 1, 3, 6},
                                                                   {0, 1, 2, 7},
                                                                   {0, 5, 6, 7},
                                                                   {1, 4, 6, 7},
                                                                   {2, 4, 5, 7},
                                                                   {3, 4, 5, 6}}};

// Exactly these links; one to itself does not count. GPUs beyond the eighth are not looked at.
bool HasLinksOfDgx1(size_t devices, const std::vector<std::vector<int>>& links) {
  if (devices < kDgx1Gpus || links.size() < kDgx1Gpus) return false;
  for (size_t i = 0; i < kDgx1Gpus; ++i) {
    std::set<int> own(links[i].begin(), links[i].end());
    own.erase(static_cast<int>(i));
    if (own != std::set<int>(kDgx1Links[i].begin(), kDgx1Links[i].end())) return false;
  }
  return true;
}

// Of `devices` that are not in `among`.
std::vector<DeviceId> Without(absl::Span<const DeviceId> devices,
                              absl::Span<const DeviceId> among) {
  std::vector<DeviceId> others;
  for (const DeviceId& device : devices) {
    if (std::ranges::find(among, device) == among.end()) others.push_back(device);
  }
  return others;
}

std::string Join(const std::vector<DeviceId>& devices) {
  return absl::StrJoin(devices, ", ", [](std::string* out, const DeviceId& device) {
    absl::StrAppend(out, ToString(device));
  });
}

}  // namespace

absl::string_view Name(CrossTowerOpsKind kind) {
  switch (kind) {
    case CrossTowerOpsKind::kReductionToOneDevice:
      return "reduction_to_one_device";
    case CrossTowerOpsKind::kNccl:
      return "nccl";
    case CrossTowerOpsKind::kHierarchicalCopy:
      return "hierarchical_copy";
  }
  LOCKSTEP_CHECK(false && "no such kind");
}

CrossTowerOpsChoice ChooseTheBest(absl::Span<const DeviceId> requested,
                                  const MachineDescription& machine) {
  CrossTowerOpsChoice choice;
  choice.unused = Without(machine.visible, requested);
  const std::vector<DeviceId> invisible = Without(requested, machine.visible);
  std::vector<DeviceId> others;
  for (const DeviceId& device : requested) {
    if (device.kind != DeviceKind::kGpu) others.push_back(device);
  }
  if (!invisible.empty()) {
    choice.warnings.push_back(absl::StrCat("requested devices are not visible: ", Join(invisible)));
  }
  if (!others.empty()) {
    choice.warnings.push_back(
        absl::StrCat("not using nccl all-reduce, devices are no GPUs: ", Join(others)));
  }
  if (!choice.warnings.empty()) {
    choice.reason =
        invisible.empty() ? "not all devices are GPUs" : "not all requested devices are visible";
    return choice;
  }
  if (HasLinksOfDgx1(requested.size(), machine.links)) {
    choice.kind = CrossTowerOpsKind::kHierarchicalCopy;
    choice.num_packs = static_cast<int>(requested.size());
    choice.reason = "the GPUs are linked as those of a DGX-1";
    return choice;
  }
  choice.kind = CrossTowerOpsKind::kNccl;
  choice.num_packs = 1;
  choice.reason = "all devices are GPUs, and not linked as those of a DGX-1";
  return choice;
}

}  // namespace lockstep::worker
