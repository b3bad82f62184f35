#include "chief/service/worker_contacts.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/exit_code.h"

namespace lockstep::chief {

WorkerContacts::WorkerContacts(ToldCluster cluster, const Membership* membership,
                               const EvaluationQueue* evaluations)
    : cluster_(std::move(cluster)), membership_(membership), evaluations_(evaluations) {}

bool WorkerContacts::OnHeartbeat(const LiveMember& process, std::optional<uint64_t> last_reply) {
  Contact& contact = contacts_[process.worker];
  if (contact.incarnation != process.incarnation) contact = {.incarnation = process.incarnation};
  // One that names no replies cannot say that it has missed any.
  const bool has_got = !last_reply.has_value() || *last_reply >= contact.cluster_reply;
  contact.has_cluster |= contact.told_cluster != 0 && has_got;
  if (contact.end_reply == 0 || last_reply.value_or(0) < contact.end_reply) return false;
  return !std::exchange(contact.knows_end, true);
}

void WorkerContacts::RecordEnded(const LiveMember& process) {
  // Others would make this grow with every index that somebody thinks of.
  if (process.worker.value() >= membership_->members().size()) return;
  contacts_[process.worker] = {
      .incarnation = process.incarnation, .told_end = true, .knows_end = true};
}

bool WorkerContacts::IsInContact(WorkerIndex worker) const {
  const auto found = contacts_.find(worker);
  const MemberRecord& member = membership_->members()[worker.value()];
  return found != contacts_.end() && member.state == MemberState::kLive &&
         found->second.incarnation == member.incarnation;
}

bool WorkerContacts::IsToldEnd(WorkerIndex worker) const {
  const auto found = contacts_.find(worker);
  return found != contacts_.end() && found->second.told_end;
}

std::optional<Lease> WorkerContacts::LeaseOf(WorkerIndex worker) const {
  return evaluations_ == nullptr ? std::nullopt : evaluations_->LeaseOf(worker);
}

// A successor may come before the group has it: the last view stays while too few are there for
// another one, and a worker that is told a view without itself ends.
bool WorkerContacts::IsInGroup(WorkerIndex worker, const Contact& contact) const {
  return group_.has_value() &&
         std::ranges::any_of(group_->members(), [&](const GroupMember& member) {
           return member.worker() == worker.value() &&
                  member.incarnation() == contact.incarnation.value();
         });
}

bool WorkerContacts::HasNews(WorkerIndex worker) const {
  const Contact& contact = contacts_.at(worker);
  if (outcome_.has_value()) return !contact.told_end;
  if (IsInGroup(worker, contact) && group_->view() != contact.told_group) return true;
  const std::optional<Lease> lease = LeaseOf(worker);
  const bool has_other_cluster =
      cluster_.has_changed() && contact.told_cluster != cluster_.number();
  return has_other_cluster || contact.told_places != places_.number() ||
         (lease.has_value() ? lease->id : 0) != contact.told_lease;
}

HeartbeatReply WorkerContacts::MakeReply(WorkerIndex worker, const ReplyId& id) {
  Contact& contact = contacts_.at(worker);
  HeartbeatReply reply;
  *reply.mutable_id() = id;
  if (outcome_.has_value()) {
    TellEnd(&contact, &reply);
    return reply;
  }
  // Also what this chief was started with: the chief before may have had another one.
  if (std::exchange(contact.told_cluster, cluster_.number()) != cluster_.number()) {
    contact.cluster_reply = id.number();
    contact.has_cluster = false;
  }
  if (!contact.has_cluster) *reply.mutable_cluster() = cluster_.newest();
  if (IsInGroup(worker, contact)) {
    contact.told_group = group_->view();
    *reply.mutable_group() = *group_;
  }
  contact.told_places = places_.number();
  places_.AddTo(&reply);
  contact.told_lease = 0;
  if (const std::optional<Lease> lease = LeaseOf(worker)) {
    contact.told_lease = lease->id;
    EvaluationLease* told = reply.add_leases();
    told->set_id(lease->id);
    told->set_version(lease->version.value());
    told->set_begin(lease->begin);
    told->set_end(lease->end);
  }
  return reply;
}

void WorkerContacts::TellEnd(Contact* contact, HeartbeatReply* reply) const {
  if (!std::exchange(contact->told_end, true)) contact->end_reply = reply->id().number();
  if (outcome_->ok()) {
    reply->set_finish(true);
  } else {
    reply->set_fail(std::string(outcome_->message()));
    reply->set_fail_exit_code(static_cast<int>(ExitCodeFor(*outcome_)));
  }
}

void WorkerContacts::AddTo(RegisterTaskReply* reply) const {
  places_.AddTo(reply);
  *reply->mutable_cluster() = cluster_.newest();
}

absl::StatusOr<RegisterTaskReply> WorkerContacts::TooLate() const {
  if (!outcome_->ok()) {
    return WithExitCode(
        absl::FailedPreconditionError(absl::StrCat("the job has failed: ", outcome_->message())),
        ExitCodeFor(*outcome_));
  }
  RegisterTaskReply reply;
  reply.set_done(true);
  return reply;
}

bool WorkerContacts::All(bool Contact::*what, bool has_begun) const {
  const auto& members = membership_->members();
  for (size_t i = 0; i < members.size(); ++i) {
    const WorkerIndex worker(i);
    // A worker that others kept the job busy without may be on its way here.
    const bool expected = members[i].state == MemberState::kLive ||
                          (members[i].state == MemberState::kAbsent && has_begun);
    const auto contact = contacts_.find(worker);
    const bool has_it = contact != contacts_.end() && contact->second.*what &&
                        (members[i].state == MemberState::kAbsent || IsInContact(worker));
    if (expected && !has_it) return false;
  }
  return true;
}

}  // namespace lockstep::chief
