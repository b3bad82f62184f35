#include "worker/peer/group.h"

#include "absl/strings/str_cat.h"

namespace lockstep::worker {

absl::StatusOr<Group> GroupFromProto(const GroupView& view, uint32_t worker, uint64_t incarnation) {
  Group group{view.job(), {view.term(), view.epoch(), view.view()}};
  group.position = -1;
  group.step = view.step();
  const auto wrong = [&](const auto&... what) {
    return absl::InvalidArgumentError(
        absl::StrCat("group of ", ToString(group.view), ": ", what...));
  };
  if (view.members().empty()) return wrong("expected members, got none");
  for (const GroupMember& member : view.members()) {
    if (member.address().empty()) return wrong("worker ", member.worker(), " has no address");
    for (const Group::Member& other : group.members) {
      if (other.worker == member.worker()) {
        return wrong("worker ", member.worker(), " is a member twice");
      }
    }
    if (member.worker() == worker && member.incarnation() == incarnation) {
      group.position = group.size();
    }
    group.members.push_back(
        {member.worker(), member.incarnation(), member.address(), member.has_variables()});
  }
  if (group.position >= 0) return group;
  return absl::AbortedError(absl::StrCat("worker ", worker, ", incarnation ", incarnation,
                                         ", is no member of ", ToString(group.view)));
}

std::string NameOfMember(const Group& group, int position) {
  const Group::Member& member = group.members[position];
  return absl::StrCat("worker ", member.worker, " (", member.address, ")");
}

PeerIdentity IdentityOf(const Group& group) {
  PeerIdentity identity;
  identity.set_job(group.job);
  identity.set_term(group.view.term);
  identity.set_epoch(group.view.epoch);
  identity.set_view(group.view.view);
  identity.set_worker(group.members[group.position].worker);
  identity.set_incarnation(group.members[group.position].incarnation);
  return identity;
}

GroupViewId ViewOf(const PeerIdentity& identity) {
  return {identity.term(), identity.epoch(), identity.view()};
}

}  // namespace lockstep::worker
