// Reduces the gradients of a step until there is a sum, in one group after the other where members
// are lost; and again, for a member's successor that needs the same sum, until the step is closed.
//
// A step does not close before every member of the newest group has the sum. So a group that begins
// with step s has all its members at s, or at s - 1 with the token of s on its way: these go on
// with s when they have applied s - 1.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "common/base/callback.h"
#include "worker/strategy/replicated/reducer_source.h"
#include "worker/strategy/replicated/retired_reducers.h"

namespace lockstep::worker {

// By one thread, or handed from one to the next: AwaitGroup, its callback;
// then for each step Reduce, its callback, Release, its callback; at the end AwaitGroup again, as
// often as wanted. In steady state a step allocates nothing. Destroyed after Cancel of the source,
// not in a callback.
class StepReduction {
 public:
  // Called with each group after the first one, but its reducer, before its first reduction. On any
  // thread.
  using Prepare = std::function<void(const ReducerOfGroup& group, StatusCallback done)>;

  // Listens to `source`, which outlives this.
  StepReduction(ReducerSource* source, Prepare prepare);
  ~StepReduction();

  // The next group that is told, without its reducer: this keeps it until the next call, or the
  // next Reduce.
  void AwaitGroup(Callback<ReducerOfGroup> done);
  // `done` gets OK when there is a sum of this step, which the group has not closed. The gradients
  // stay until the callback of Release. Errors: as GroupReducer, but for those that another group
  // may mend.
  void Reduce(GlobalStep step, absl::Span<const std::vector<TensorView>> gradients,
              StatusCallback done);
  // The step is closed. `done` gets OK when no reduction of it runs here any more.
  void Release(StatusCallback done);

  // From the callback of Release on until the next Reduce: with the sum.
  const GroupReducer& sum() const;
  // Whether this worker stores versions: as of the group of the last Reduce.
  bool is_first() const;

 private:
  // What to do next, outside the lock.
  struct Action {
    enum Kind { kNothing, kTellGroup, kTell, kReduce, kNoteFailure };
    Kind kind = kNothing;
    absl::Status status;
    Callback<ReducerOfGroup> tell_group;
    StatusCallback tell;
    std::optional<ReducerOfGroup> group;  // that is told, or prepared; without its reducer
    GroupViewId failed_view;
  };

  void Listen();
  void OnGroup(absl::StatusOr<ReducerOfGroup> group);
  // Does what there is to do.
  void Advance();
  Action NextAction() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool TakeNewerGroup() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Run(Action action);
  void OnPrepared(const absl::Status& status);
  void OnReduced(const absl::Status& status);

  ReducerSource* const source_;
  const Prepare prepare_;

  mutable absl::Mutex mutex_;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);  // for good
  Callback<ReducerOfGroup> await_group_ ABSL_GUARDED_BY(mutex_);
  ReducerOfGroup group_ ABSL_GUARDED_BY(mutex_);  // reductions run in it
  std::optional<ReducerOfGroup> newer_ ABSL_GUARDED_BY(mutex_);
  bool is_listening_ ABSL_GUARDED_BY(mutex_) = false;
  bool has_failed_ ABSL_GUARDED_BY(mutex_) = false;        // the group
  bool is_failure_noted_ ABSL_GUARDED_BY(mutex_) = false;  // at the source
  // The step that is being reduced, and its gradients; false: released.
  bool is_open_ ABSL_GUARDED_BY(mutex_) = false;
  GlobalStep step_ ABSL_GUARDED_BY(mutex_);
  absl::Span<const std::vector<TensorView>> gradients_ ABSL_GUARDED_BY(mutex_);
  bool is_due_ ABSL_GUARDED_BY(mutex_) = false;  // a reduction in this group has still to begin
  std::shared_ptr<GroupReducer> running_ ABSL_GUARDED_BY(mutex_);  // null: none reduces
  std::shared_ptr<GroupReducer> sum_ ABSL_GUARDED_BY(mutex_);      // has it; null: none yet
  StatusCallback reduced_ ABSL_GUARDED_BY(mutex_);
  StatusCallback released_ ABSL_GUARDED_BY(mutex_);
  // Of older groups, until their callbacks have returned. Last: these use the rest.
  RetiredReducers retired_;
};

}  // namespace lockstep::worker
