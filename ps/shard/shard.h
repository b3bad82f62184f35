// One shard of the parameter server. It admits calls (job, term, epoch, incarnation) and passes
// them to the owners of the epoch's state (EpochState). One lock guards them all; copying, summing
// and applying happen without it.
//
// Thread-safe. Completion callbacks are called exactly once, never under a lock, on the thread
// whose call made them possible (or at once, on the caller's). Errors are those of
// docs/protocol.md.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/base/callback.h"
#include "common/base/clock.h"
#include "common/base/thread_pool.h"
#include "common/transport/lent_memory.h"
#include "ps/shard/calls.h"
#include "ps/shard/copy_target.h"
#include "ps/shard/epoch_gate.h"
#include "ps/shard/memory_claims.h"
#include "ps/shard/parked_pulls.h"
#include "ps/shard/shard_view.h"

namespace lockstep::ps {

class StepApplier;

struct ShardOptions {
  // Gradients held until their step closes; 0: as much as the placement needs for all replicas.
  uint64_t held_bytes_budget = 0;
  // That sum and apply the gradients of a large variable, the calling one included.
  int threads = 1;
  // Makes memory of so many bytes that workers can look at, for the values of one epoch; nullopt,
  // as where this is null: there is none, and they are on the heap. Any thread.
  std::function<std::optional<LentMemory>(uint64_t bytes)> make_value_memory;
  // Of the process, with its other shard; outlives both. Variables that need more are refused.
  // Null: nobody knows what there is.
  MemoryClaims* memory = nullptr;
  // Does on another thread, one after the other, what takes long: memory that is let go. Outlives
  // the shard. The calling thread does what this answers with false, and everything where it is
  // null.
  RunInBackground run_in_background;
  // How a shard reaches its copy; null: views name none.
  MakeCopyTarget make_copy_target;
  const Clock* clock = Clock::Real();  // outlives the shard
  // For messages: who serves the shard while this one keeps its copy, "ps 0". Empty: nobody knows.
  std::string other_place;
};

class Shard {
 public:
  explicit Shard(const ShardOptions& options);
  ~Shard();  // no call may be under way; what is parked is answered UNAVAILABLE

  ShardState GetView() const;
  // ABORTED: an older term or epoch. FAILED_PRECONDITION: another job, or another shard index than
  // before. A newer term withdraws the old chief's grants; a newer epoch drops the variables, and
  // what still works on them, or makes them, comes to nothing. Where workers keep the variables,
  // the step of the answer is the first that still takes gradients. UNAVAILABLE: a copy that is to
  // serve the workers still applies what it holds, and has kept nothing of the view, neither term
  // nor members; IsNoVariables: it awaits state. A shard that
  // becomes a copy drops its variables, and so does a copy of which a new view makes a new one.
  absl::StatusOr<ShardState> SetView(const View& view);
  // Bytes of this shard's values. Repeatable; what exists is left alone. Takes as long as making
  // the values or reading the checkpoint does; meanwhile other calls are answered UNAVAILABLE. With
  // `awaits_state`, at a copy, what was not made to await state is replaced.
  absl::StatusOr<CreatedVariables> CreateVariables(const CreateVariablesRequest& request);
  // Grant, CommitStep, AwaitStored and Save are UNAVAILABLE at a copy, which is told the steps by
  // its primary.
  //
  // Parked until the step is closed; a shard that has closed it already answers at once. The same
  // step again replaces the parked call, which is answered UNAVAILABLE. A grant for the step after
  // the current one waits its turn. With `commit` the tokens go out before `done` is called. In an
  // asynchronous job it orders nothing: it waits for any step to be over, and keeps its version.
  void Grant(const GrantArguments& arguments, Callback<ClosedStep> done);
  // Step shard. Repeatable. Returns the global step.
  absl::StatusOr<GlobalStep> CommitStep(const Command& command, GlobalStep step, bool last);
  // Writes the kept version to the folder, or the newest one while no grant is parked and no
  // gradient of the step at hand has been taken; blocks on the disk, so not for a polling thread.
  absl::StatusOr<ShardFile> Save(const Command& command, GlobalStep version,
                                 const std::string& folder);
  // Finds out, for ShardState::holds_unsaved, whether the checkpoint exists by now that this shard
  // was last told to save its part of. Blocks on the disk.
  void LookForCheckpoint();
  // `done` gets true when workers have stored what they keep of the version: it can be saved.
  void AwaitStored(const Command& command, GlobalStep version, Callback<bool> done);
  // With what the version's evaluation found, which is kept.
  absl::Status ReleaseSnapshot(const Command& command, GlobalStep version,
                               const std::optional<EvaluatedVersion>& evaluation = std::nullopt);
  // The job is over: parked calls are answered, tokens with done, others CANCELLED. Later grants
  // are refused; workers that did not know yet come to their end: pushes are dropped as stale,
  // uncounted, and tokens say done.
  absl::Status Finish(const Command& command);

  // Whether a call of this chief or worker would be admitted now; the error that it would get. A
  // chief is admitted before there are variables.
  absl::Status Admit(const Command& command) const;
  // As ShardView::TermOf; UNAVAILABLE: stopping.
  absl::StatusOr<Term> TermOf(const Command& command) const;
  absl::Status Admit(const WorkerIdentity& worker) const;
  // Takes what there is room for, also of a message that is answered RESOURCE_EXHAUSTED because
  // there was none for the rest; sending it all again is harmless.
  absl::StatusOr<PushResult> Push(const PushArguments& arguments);
  // RESOURCE_EXHAUSTED: as many pulls as common/base/limits.h allows wait for their versions.
  void Pull(const PullArguments& arguments, Callback<PullResult> done);
  void DequeueToken(const DequeueArguments& arguments, Callback<Token> done);
  // Whether nothing of the version is missing now. Copies the tensors under the lock: their sender
  // cuts them (proto/ps.proto).
  absl::StatusOr<bool> Store(const StoreArguments& arguments);
  // Whether all of the state has come. FAILED_PRECONDITION: this is no copy that awaits state, or
  // has begun at another step; with `completes`, what is missing. UNAVAILABLE, ABORTED: as
  // StateReceiver::CheckStep.
  absl::StatusOr<bool> PutState(const StateArguments& arguments);
  // The caller has gone: its parked pull is answered CANCELLED, and so is one that is about to
  // park. Does nothing to a pull that has been answered.
  void CancelPull(PullTicket* ticket);

  // Answers every parked call, and new ones, UNAVAILABLE, as those of a process that has died. For
  // one that is told to stop.
  void Stop();

  ShardReport Report() const;
  // Takes no time that a push would notice.
  ShardActivity Activity() const;

 private:
  friend class PushOperation;

  enum class Phase { kServing, kFinished, kStopped };

  // UNAVAILABLE: stopping.
  absl::Status CheckServing() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Then an error of `identity`; UNAVAILABLE: creating variables; FAILED_PRECONDITION: none.
  absl::Status CheckHosting(const absl::Status& identity) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The errors of CheckHosting.
  absl::StatusOr<EpochGate::Pass> Enter(const WorkerIdentity& worker) ABSL_LOCKS_EXCLUDED(mutex_);
  ShardState StateNow() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Answers grants and pulls that wait.
  void FailWaiting(const absl::Status& status, DeferredCallbacks* deferred)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status EnterView(const View& view, EpochGate::Pass* ended,
                         std::optional<StepApplier>* applier, DeferredCallbacks* deferred)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TakeReplicaViews(EpochState* state) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Of a primary: as the view says, finds its copy, or goes on alone. `is_new`: a copy found now
  // lacks the state. The target that is left, to be ended without the lock; null: none.
  std::shared_ptr<CopyTarget> UpdateCopy(bool is_new, EpochState* state)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // A new copy is lost: the shard goes on alone, unless it has another one by now.
  void LoseCopy(uint64_t number) ABSL_LOCKS_EXCLUDED(mutex_);
  // Of a copy that the view makes the primary. UNAVAILABLE as SetView.
  absl::Status BecomePrimary(const View& view, DeferredCallbacks* deferred)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // UNAVAILABLE: another ps serves the workers.
  absl::Status NowCopied() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The copy serves the workers in place of this shard. Does nothing unless the target of this
  // number is the last one, and the variables that it was made for are there.
  void Depose(uint64_t number) ABSL_LOCKS_EXCLUDED(mutex_);
  // Drops the variables; calls that wait for them are answered with `why`.
  EpochGate::Pass DropVariables(const absl::Status& why, DeferredCallbacks* deferred)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  ShardView::Hosted Hosted() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Before variables are created: the request's answer where there are such already; nullopt: they
  // are to be created. `*dropped`: those that they replace.
  absl::StatusOr<std::optional<CreatedVariables>> FindCreated(const CreateVariablesRequest& request,
                                                              EpochGate::Pass* dropped,
                                                              DeferredCallbacks* deferred)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const ShardOptions options_;
  ThreadPool pool_;
  mutable absl::Mutex mutex_;
  Phase phase_ ABSL_GUARDED_BY(mutex_) = Phase::kServing;
  ShardView view_ ABSL_GUARDED_BY(mutex_);
  bool is_creating_ ABSL_GUARDED_BY(mutex_) = false;
  // Of the last target, until its variables are dropped.
  uint64_t copy_number_ ABSL_GUARDED_BY(mutex_) = 0;
  PushCounts counts_ ABSL_GUARDED_BY(mutex_);
  uint64_t state_messages_ ABSL_GUARDED_BY(mutex_) = 0;  // that Store and PutState have admitted
  Readers readers_ ABSL_GUARDED_BY(mutex_);
  EpochGate gate_;
};

// A call instead of three, for gradients that are one message: Push; then, if the gradient counts
// as a whole or the shard has closed its step, the token, and with it the values. `done` comes when
// all is there, as in Shard, or at once where there is nothing to wait for: after PENDING or STALE
// the caller has something to do. An error is that of the push. Token and values are best effort;
// DequeueToken and Pull report their errors. `shard` answers before it goes.
void PushPull(Shard* shard, const PushArguments& arguments, NextStepArguments next,
              Callback<PushPullResult> done);

}  // namespace lockstep::ps
