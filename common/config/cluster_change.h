// Checks whether a running process can go on with a changed cluster spec. Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/config/cluster_spec.h"

namespace lockstep {

struct ClusterChangeRules {
  Role role = Role::kWorker;  // of this process
  int index = 0;
  bool listens_elsewhere = false;   // its address in the spec is not the one that it listens on
  bool workers_may_change = false;  // their number: of a job whose workers come and go
};

// OK if this process can go on with `after` in place of `before`. Addresses may change.
// INVALID_ARGUMENT naming the entry: another number of tasks; an address that was another task's; a
// change of the address that this process listens on.
absl::Status CheckClusterChange(const ClusterSpec& before, const ClusterSpec& after,
                                const ClusterChangeRules& rules);

// For the log: "ps 1 moved from a:1 to b:2", "worker 3 (c:1) was added". Empty: nothing changed.
std::vector<std::string> DescribeClusterChange(const ClusterSpec& before, const ClusterSpec& after);

}  // namespace lockstep
