#include "chief/job/replica_watch.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/exit_code.h"

namespace lockstep::chief {

absl::Status ReplicaWatch::Check(GlobalStep global_step) {
  std::vector<LiveMember> live = membership_->Live();
  // Until the first step is over, whoever comes finds its version at the ps.
  if (holders_.empty() || global_step == start_) {
    holders_ = std::move(live);
    return absl::OkStatus();
  }
  for (const LiveMember& holder : holders_) {
    if (std::ranges::find(live, holder) != live.end()) continue;
    const MemberRecord& record = membership_->members()[holder.worker.value()];
    return WithExitCode(
        absl::UnavailableError(absl::StrCat(
            "worker ", holder.worker.value(), " (", record.address,
            ") is lost, and with it its variables and slots of step ", global_step.value(),
            " (strategy replicated). Remedy: start the cluster again, the chief with --resume: it "
            "goes on from the newest checkpoint")),
        ExitCode::kPeersLost);
  }
  return absl::OkStatus();
}

}  // namespace lockstep::chief
