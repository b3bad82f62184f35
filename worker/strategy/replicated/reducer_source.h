// Where the reducer of a replicated job's gradients comes from: of the one worker, or of the group
// that the chief has formed.
#pragma once

#include <memory>

#include "common/base/callback.h"
#include "worker/collective/group_reducer.h"

namespace lockstep::worker {

struct ReducerOfGroup {
  std::unique_ptr<GroupReducer> reducer;
  bool is_first = true;  // this worker is the first of the group: it stores versions
};

class ReducerSource {
 public:
  virtual ~ReducerSource() = default;

  // The reducer of the newest group, as soon as there is a group that has not been told yet. One
  // call at a time. `done` comes on any thread, or before the call returns.
  virtual void Next(Callback<ReducerOfGroup> done) = 0;
  // Ends the pending call, and later ones, with CANCELLED. Thread-safe.
  virtual void Cancel() = 0;
};

}  // namespace lockstep::worker
