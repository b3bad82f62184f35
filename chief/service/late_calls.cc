// What comes late: from a process that has died since, or of one that has begun in an earlier run
// of the job.
#include "absl/strings/str_cat.h"
#include "chief/service/worker_calls.h"
#include "common/base/exit_code.h"
#include "common/log/log.h"

namespace lockstep::chief {

void WorkerCalls::NoteReceived(const LiveMember& process, const ReplyId& last_reply) {
  if (const auto alive_at = order_.Receive(process, last_reply)) {
    membership_->NoteAlive(process, *alive_at);
  }
}

bool WorkerCalls::HasRegisteredLate(const HeartbeatRequest& request) const {
  const LiveMember process = ProcessOf(request);
  if (!members_known_ || process.worker.value() >= membership_->members().size()) return false;
  const MemberRecord& member = membership_->members()[process.worker.value()];
  return member.state == MemberState::kLive && member.incarnation == process.incarnation &&
         !member.is_inherited && order_.IsOfOtherRun(request);
}

absl::Status WorkerCalls::Dismiss(const LiveMember& process) {
  const std::string text =
      absl::StrCat(NameOf(process.worker),
                   " began in an earlier run of the job: its registration has come late");
  log::Warning(text);
  EndLease(process);
  return WithExitCode(absl::AbortedError(absl::StrCat(text, ". Remedy: start it again")),
                      ExitCode::kPeersLost);
}

}  // namespace lockstep::chief
