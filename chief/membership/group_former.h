// Forms the groups in which workers reduce their gradients (strategy replicated), and knows who has
// the variables. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "chief/membership/membership.h"
#include "common/base/ids.h"

namespace lockstep::chief {

class GroupFormer {
 public:
  struct Member {
    LiveMember live;
    // Of the view's step. Who is in a view of an earlier step than the one at hand has taken part
    // in all steps between.
    bool has_variables = false;
  };
  // The first step that no shard has closed, and the version that the ps have, which every worker
  // can begin with.
  struct Steps {
    GlobalStep open;
    GlobalStep at_ps;
  };

  // `size`: the members without which no step can close. `adopted`: those that an earlier chief
  // had; they have the variables.
  GroupFormer(size_t size, absl::Span<const LiveMember> adopted);

  // The live members, in the order of workers, as every shard knows them. True: they are a new view
  // of the group. Fewer than the size are none: the last view stays until there are enough.
  // UNAVAILABLE with exit code 138: none of them has the variables, nor have the ps.
  absl::StatusOr<bool> Update(absl::Span<const LiveMember> live, const Steps& steps);
  // A member says that the reduction of `step` has failed there in this view, and that it has no
  // sum: the next Update makes a new view, also of the same members.
  void NoteFailure(uint64_t view, GlobalStep step);

  uint64_t view() const { return view_; }  // 0: none yet
  GlobalStep step() const { return step_; }
  const std::vector<Member>& members() const { return members_; }

 private:
  bool HasVariables(const LiveMember& live, GlobalStep step) const;
  bool IsOfView(absl::Span<const LiveMember> live) const;

  const size_t size_;
  uint64_t view_ = 0;
  GlobalStep step_;
  std::optional<GlobalStep> failed_;  // in this view
  std::vector<Member> members_;
};

}  // namespace lockstep::chief
