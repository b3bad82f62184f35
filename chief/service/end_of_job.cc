// What workers are told once the job is over.
#include <utility>

#include "absl/strings/str_cat.h"
#include "chief/service/worker_calls.h"
#include "common/base/exit_code.h"

namespace lockstep::chief {

absl::StatusOr<RegisterTaskReply> WorkerCalls::TooLate() const {
  if (!outcome_->ok()) {
    return WithExitCode(
        absl::FailedPreconditionError(absl::StrCat("the job has failed: ", outcome_->message())),
        ExitCodeFor(*outcome_));
  }
  RegisterTaskReply reply;
  reply.set_done(true);
  return reply;
}

void WorkerCalls::End(absl::Status outcome) {
  outcome_ = std::move(outcome);
  AnswerHeartbeats([](WorkerIndex, const ParkedHeartbeat&) { return true; });
  for (ParkedRegistration& call : std::exchange(registrations_, {})) {
    NoteTold(call.request);
    call.answer(TooLate());
  }
}

void WorkerCalls::Close(const absl::Status& why) {
  for (auto& [worker, call] : std::exchange(heartbeats_, {})) call.answer(why);
  for (ParkedRegistration& call : std::exchange(registrations_, {})) call.answer(why);
}

// A worker that is told as it registers does not call again.
void WorkerCalls::NoteTold(const RegisterTaskRequest& request) {
  if (!outcome_.has_value()) return;
  contacts_[WorkerIndex(request.worker())] = {
      .incarnation = Incarnation(request.incarnation()), .told_end = true, .knows_end = true};
}

bool WorkerCalls::LearnsOfEnd(const HeartbeatRequest& request, Contact* contact) const {
  if (contact->end_reply == 0 || order_.NumberOf(request.last_reply()) < contact->end_reply) {
    return false;
  }
  return !std::exchange(contact->knows_end, true);
}

bool WorkerCalls::All(bool Contact::*what) const {
  const auto& members = membership_->members();
  for (size_t i = 0; i < members.size(); ++i) {
    const WorkerIndex worker(i);
    // A worker that others kept the job busy without may be on its way here.
    const bool expected = members[i].state == MemberState::kLive ||
                          (members[i].state == MemberState::kAbsent && job_.has_value());
    const auto contact = contacts_.find(worker);
    const bool has_it = contact != contacts_.end() && contact->second.*what &&
                        (members[i].state == MemberState::kAbsent || IsInContact(worker));
    if (expected && !has_it) return false;
  }
  return true;
}

}  // namespace lockstep::chief
