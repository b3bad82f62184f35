// Where the reducer of a replicated job's gradients comes from: of the one worker, or of the group
// that the chief has formed.
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
  GroupViewId view;  // the chief's; its view is 0: of one worker the chief forms no group
  // The first step that is not closed: every member reduces it in this group, again if need be.
  GlobalStep step;
  bool is_first = true;  // this worker is the first of the group: it stores versions
  // Of those that have the variables of `step`, it is the first, and stores that version. Such a
  // member may have come later than this group's first one.
  bool is_first_holder = true;
  // The chief takes this worker for one that has them. A new chief does so with every member that
  // it finds, also with one that was still reading them.
  bool counts_as_holder = false;
  // A group may have fewer members than the one before: only its own sum counts.
  bool sums_differ = false;
  // Others that have them, by position, for a worker that has not. None: the ps have the version.
  std::vector<int> holders;
  MemberStates* states = nullptr;  // of the reducer; null: there are no others
};

class ReducerSource {
 public:
  virtual ~ReducerSource() = default;

  // The reducer of the newest group, as soon as there is a group that has not been told yet. One
  // call at a time. `done` comes on any thread, or before the call returns. An older group's
  // reducer still has its last sum, and reduces no more.
  virtual void Next(Callback<ReducerOfGroup> done) = 0;
  // The reduction in the group of `view` has failed, and this worker has no sum of its step. It
  // waits for another group. Ignored once a newer group has been told: an older one ends with it,
  // and the newer one may work. Thread-safe.
  virtual void NoteFailure(const GroupViewId& view) = 0;
  // What the others may read of this worker; null: nothing. Thread-safe.
  virtual void SetOwnState(OwnState* state) = 0;
  // Ends the pending call and later ones, and the reduction that runs, with CANCELLED. Thread-safe.
  virtual void Cancel() = 0;
};

}  // namespace lockstep::worker
