// StandbyCallers records the worker processes that call a chief before it knows its members: while
// it stands by or takes over. A live worker asks all chiefs in turn while none commands. So the
// chief can tell which members have been silent once it knows the members.
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

  // Forgets a process that has not called for 10 s. Callers are not checked yet, so calls beyond
  // the limits are ignored.
  void RecordCall(WorkerIndex worker, Incarnation incarnation, absl::Duration now);
  ProcessCalls Of(WorkerIndex worker, absl::Duration now) const;

 private:
  std::map<WorkerIndex, ProcessCalls> callers_;
};

}  // namespace lockstep::chief
