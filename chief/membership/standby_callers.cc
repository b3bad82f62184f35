#include "chief/membership/standby_callers.h"

namespace lockstep::chief {
namespace {

constexpr absl::Duration kForgotten = absl::Seconds(10);

void Forget(absl::Duration now, ProcessCalls* processes) {
  std::erase_if(*processes,
                [now](const auto& process) { return now - process.second.last > kForgotten; });
}

}  // namespace

void StandbyCallers::RecordCall(WorkerIndex worker, Incarnation incarnation, absl::Duration now) {
  if (callers_.size() >= kMaxWorkers && !callers_.contains(worker)) return;
  ProcessCalls& processes = callers_[worker];
  Forget(now, &processes);
  if (processes.size() >= kMaxProcesses && !processes.contains(incarnation)) return;
  processes.try_emplace(incarnation, CallTimes{now, now}).first->second.last = now;
}

ProcessCalls StandbyCallers::Of(WorkerIndex worker, absl::Duration now) const {
  const auto found = callers_.find(worker);
  ProcessCalls processes = found == callers_.end() ? ProcessCalls() : found->second;
  Forget(now, &processes);
  return processes;
}

}  // namespace lockstep::chief
