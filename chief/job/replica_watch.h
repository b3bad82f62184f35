// Whether the workers of a replicated job still have its variables.
//
// Lives on the executor's thread.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "chief/membership/membership.h"
#include "common/base/ids.h"

namespace lockstep::chief {

class ReplicaWatch {
 public:
  // `start`: the version that the ps have. `membership` outlives the watch.
  ReplicaWatch(GlobalStep start, const Membership* membership)
      : start_(start), membership_(membership) {}

  // Call it at each change of the members, and of `global_step`. UNAVAILABLE naming a worker that
  // went with its variables; exit code 138.
  absl::Status Check(GlobalStep global_step);

 private:
  const GlobalStep start_;
  const Membership* const membership_;
  std::vector<LiveMember> holders_;
};

}  // namespace lockstep::chief
