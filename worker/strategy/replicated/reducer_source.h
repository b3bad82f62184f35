// ReducerSource provides the reducer of a replicated job's gradients: that of the one worker, or of
// the group that the chief has formed.
#pragma once

#include <memory>
#include <vector>

#include "common/base/callback.h"
#include "common/base/group_view_id.h"
#include "common/base/ids.h"
#include "worker/collective/group_reducer.h"
#include "worker/collective/member_state.h"

namespace lockstep::worker {

struct ReducerOfGroup {
  std::shared_ptr<GroupReducer> reducer;
  GroupViewId view;  // the chief's; its view is 0 with one worker: the chief forms no group then
  // The first step that is not closed. Every member reduces it in this group, if necessary again.
  GlobalStep step;
  bool is_first = true;  // this worker is the first of the group: it stores versions
  // This worker is the first member that has the variables of `step`: it stores that version. It
  // may have come later than the group's first member.
  bool is_first_holder = true;
  // The chief counts this worker as one that has them. A new chief counts every member that it
  // finds, even one that was still reading them.
  bool counts_as_holder = false;
  // A group may have fewer members than the previous one: only its own sum counts.
  bool sums_differ = false;
  // Positions of other members that have them, for a worker that has not. Empty: the ps have the
  // version.
  std::vector<int> holders;
  MemberStates* states = nullptr;  // of the reducer; null: there are no others
};

class ReducerSource {
 public:
  virtual ~ReducerSource() = default;

  // Passes the reducer of the newest group to `done`, as soon as there is a group that was not
  // passed before. One call at a time. `done` runs on any thread, or before the call returns. An
  // older group's reducer still has its last sum, and reduces no more.
  virtual void Next(Callback<ReducerOfGroup> done) = 0;
  // The reduction in the group of `view` has failed, and this worker has no sum of its step. It
  // waits for another group. Ignored once a newer group was passed to `done`: the older one has
  // ended, and the newer one may work. Thread-safe.
  virtual void NoteFailure(const GroupViewId& view) = 0;
  // Sets the state of this worker that other members may read. Null: none. Thread-safe.
  virtual void SetOwnState(OwnState* state) = 0;
  // Ends the pending call and later ones, and the reduction that runs, with CANCELLED. Thread-safe.
  virtual void Cancel() = 0;
};

}  // namespace lockstep::worker
