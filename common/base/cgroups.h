// The control groups of this process.
#pragma once

#include <functional>
#include <string>

#include "absl/strings/string_view.h"

namespace lockstep {

// Calls `visit` for each group that limits `controller` ("memory", "cpu"): the process's own, and
// all groups around it. `folder` has the group's files; `is_unified`: by the second version of
// control groups. In a container the group's own files may lie at the root of the tree, which is
// visited last. /proc/self/cgroup and the tree /sys/fs/cgroup are read below `root`; empty: the
// system's. Thread-safe.
void VisitCgroups(const std::string& root, absl::string_view controller,
                  const std::function<void(const std::string& folder, bool is_unified)>& visit);

}  // namespace lockstep
