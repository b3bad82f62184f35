// The group of workers that this one reduces with: a view of it, as the chief formed it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/group_view_id.h"
#include "proto/group.pb.h"
#include "proto/peer.pb.h"

namespace lockstep::worker {

// A value.
struct Group {
  struct Member {
    uint32_t worker = 0;
    uint64_t incarnation = 0;
    std::string address;
    bool has_variables = false;  // of `step`
  };

  uint64_t job = 0;
  GroupViewId view;
  std::vector<Member> members;  // in the order of the reductions; not empty
  int position = 0;             // of this worker among them
  int64_t step = 0;             // the first that is not closed: the view begins with it

  int size() const { return static_cast<int>(members.size()); }
};

// For the worker that is this incarnation. INVALID_ARGUMENT naming what is wrong: no members, one
// twice, an address that is empty. ABORTED: this incarnation is no member.
absl::StatusOr<Group> GroupFromProto(const GroupView& view, uint32_t worker, uint64_t incarnation);

// "worker 2 (host:port)".
std::string NameOfMember(const Group& group, int position);
// What this worker's messages say of it.
PeerIdentity IdentityOf(const Group& group);
GroupViewId ViewOf(const PeerIdentity& identity);

}  // namespace lockstep::worker
