// Which worker processes have called a chief before it knew its members: while it stands by, and
// while it takes over. A worker that lives asks all chiefs in turn while none commands, so when
// this one knows the members it knows who of them has been silent.
// Pure: times are arguments, of one monotonic clock. Not thread-safe.
#pragma once

#include <cstddef>
#include <map>

#include "absl/time/time.h"
#include "common/base/ids.h"

namespace lockstep::chief {

struct CallTimes {
  absl::Duration first;
  absl::Duration last;
};
using ProcessCalls = std::map<Incarnation, CallTimes>;

class StandbyCallers {
 public:
  static constexpr size_t kMaxWorkers = 65'536;
  static constexpr size_t kMaxProcesses = 16;  // of a worker

  // A process that has not called for 10 s is forgotten. Callers have not been checked: what is
  // beyond the limits is not noted.
  void RecordCall(WorkerIndex worker, Incarnation incarnation, absl::Duration now);
  ProcessCalls Of(WorkerIndex worker, absl::Duration now) const;

 private:
  std::map<WorkerIndex, ProcessCalls> callers_;
};

}  // namespace lockstep::chief
