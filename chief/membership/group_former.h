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
#include "common/base/group_view_id.h"
#include "common/base/ids.h"

namespace lockstep::chief {

// Nobody has what workers had of this step. UNAVAILABLE with exit code 138.
absl::Status VariablesLost(GlobalStep step);

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

  // For a chief of this term, in one epoch. `size`: the members without which no step can close.
  // `adopted`: those that an earlier chief had; they have the variables.
  GroupFormer(Term term, Epoch epoch, size_t size, absl::Span<const LiveMember> adopted);

  // The live members, in the order of workers, as every shard knows them. True: they are a new view
  // of the group. Fewer than the size are none: the last view stays until there are enough.
  // VariablesLost: none of them has the variables, nor have the ps.
  absl::StatusOr<bool> Update(absl::Span<const LiveMember> live, const Steps& steps);
  // After the last step, which ends with `version`: those of the live members that have it. True:
  // they are a new view.
  bool KeepHolders(absl::Span<const LiveMember> live, GlobalStep version);
  // Whether one of these members has the variables of `step`.
  bool HasHolder(absl::Span<const LiveMember> live, GlobalStep step) const;
  // A member says that the reduction of `step` has failed there in `view`, and that it has no sum:
  // if that is the last view, the next Update makes a new one, also of the same members. Each other
  // view is over, among them those of other chiefs and epochs, which have the same numbers.
  void NoteFailure(const GroupViewId& view, GlobalStep step);

  const GroupViewId& id() const { return id_; }  // of the last view
  GlobalStep step() const { return step_; }
  const std::vector<Member>& members() const { return members_; }

 private:
  bool HasVariables(const LiveMember& live, GlobalStep step) const;
  bool IsOfView(absl::Span<const LiveMember> live) const;

  const size_t size_;
  GroupViewId id_;
  GlobalStep step_;
  std::optional<GlobalStep> failed_;  // in this view
  std::vector<Member> members_;
};

}  // namespace lockstep::chief
