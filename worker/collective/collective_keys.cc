#include "worker/collective/collective_keys.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/philox.h"

namespace lockstep::worker {

uint64_t CollectiveKeys::GroupOf(absl::Span<const DeviceId> devices) {
  std::vector<DeviceId> sorted(devices.begin(), devices.end());
  std::ranges::sort(sorted);
  uint64_t group = 1;
  for (const DeviceId& device : sorted) {
    group = MixSeeds(group, static_cast<uint64_t>(device.worker));
    group = MixSeeds(group, static_cast<uint64_t>(device.kind));
    group = MixSeeds(group, static_cast<uint64_t>(device.index));
  }
  return group == 0 ? 1 : group;
}

CollectiveKey CollectiveKeys::Next(absl::Span<const DeviceId> devices) {
  const uint64_t group = GroupOf(devices);
  return {group, issued_[group]++};
}

std::string ToString(const CollectiveCall& call) {
  return absl::StrCat("group ", absl::Hex(call.key.group), ", instance ", call.key.instance, ", ",
                      Name(call.algorithm), " over ", call.length, " elements");
}

absl::Status CheckSameCall(const CollectiveCall& own, const CollectiveCall& theirs,
                           const std::string& peer) {
  if (own == theirs) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("collective: expected ", ToString(own), ", got ", ToString(theirs), " from ",
                   peer, ". Remedy: start every worker with the same model and all_reduce_spec"));
}

}  // namespace lockstep::worker
