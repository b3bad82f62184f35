// One step after another: keeps the grants of the current and the next step parked at every shard,
// commits a step at the step shard when all shards have closed it, and repeats what was lost.
// PsControl's errors name the shard.
//
// In an asynchronous job a step is a push that the step shard has applied. Grants are parked there
// alone, and tell of its steps; what is to be kept of a version, the other shards are asked to keep
// when the step shard has it. They are at versions of their own.
//
// Lives on the executor's thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "chief/loop/executor.h"
#include "chief/sync/retry.h"
#include "chief/sync/shard_problem.h"
#include "common/base/callback.h"
#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/client/ps_control.h"

namespace lockstep::chief {

// What of a version must stay readable until it is released.
struct Keep {
  bool values = false;
  bool slots = false;
};

struct StepLoopOptions {
  Command command;
  GlobalStep start;  // committed already
  GlobalStep end;    // after the start
  // Grants nothing from this step on, and ends when the step before it is committed; none: `end`.
  std::optional<GlobalStep> stop_at = {};
  bool asynchronous = false;
  uint32_t required = 1;
  // In place of `required`, where the replicas of steps differ; may be null. Its answers may
  // change: then call UpdateRequired.
  std::function<uint32_t(GlobalStep)> required_of = nullptr;
  uint32_t loss_variable = 0;  // id of the statistic
  // Both are functions of their argument alone: a grant may be issued twice.
  std::function<float(GlobalStep)> learning_rate;
  std::function<Keep(GlobalStep version)> keep;
  absl::Duration patience = absl::Seconds(120);  // with a shard that cannot be reached
};

struct CommittedStep {
  GlobalStep global_step;     // after the commit
  std::optional<float> loss;  // mean over what was accepted; none when the shard did not tell
};

struct StepProgress {
  GlobalStep step;  // first one that is not known to be closed; asynchronous: its own version
  uint64_t accepted = 0;
  uint64_t stale = 0;
  ShardProblem problem;
};

class StepLoop {
 public:
  // `shards`, `executor` and `clock` outlive the loop, and so do the calls in flight: destroy the
  // loop after the executor has ended or is closed.
  // `on_commit` is called for every step in order; `on_end` once: OK after the last commit or at
  // `stop_at`, or why
  // there will be none: ABORTED for a newer chief, UNAVAILABLE for a shard that was lost.
  StepLoop(StepLoopOptions options, std::vector<PsControl*> shards, Executor* executor,
           const Clock* clock, std::function<void(const CommittedStep&)> on_commit,
           StatusCallback on_end);

  void Start();
  // Repeats what is due. Several times a second.
  void Tick();
  // No further calls, no further callbacks.
  void Stop() { ended_ = true; }

  // From now on a step needs this many gradients: also the steps that are granted and not closed.
  void SetRequired(uint32_t required);
  uint32_t required() const { return required_; }
  // Gives those grants again for which StepLoopOptions::required_of says another number now.
  void UpdateRequired();
  // Grants nothing from this step on until it is called again; nullopt: there is no such step. A
  // step that was granted stays granted. Not of an asynchronous job.
  void HoldFrom(std::optional<GlobalStep> step);
  // The first step that no shard has been granted.
  GlobalStep next_grant() const { return next_grant_; }

  GlobalStep global_step() const { return global_step_; }
  const std::vector<StepProgress>& shards() const { return progress_; }

 private:
  struct Grant {
    GlobalStep step;
    uint32_t required = 1;
    uint32_t issue = 0;  // of the same step again, with other terms
    bool closed = false;
    std::optional<float> loss;
    Retry retry;
  };

  void OpenGrants();
  void OpenGrant(size_t shard, GlobalStep step);
  void SendGrant(size_t shard, GlobalStep step);
  GrantRequest MakeGrant(size_t shard, GlobalStep step) const;
  void OnGrant(size_t shard, GlobalStep step, uint32_t issue, absl::StatusOr<GrantReply> reply);
  void NoteProgress(size_t shard, GlobalStep step, const GrantReply& reply);
  // Commits the step at hand if every shard has closed it.
  void Proceed();
  // Asynchronous: whether a shard is still to keep its share of the step shard's version.
  bool AskOthersToKeep();
  // Whether a shard is back: a grant that was sent again says nothing while it is parked.
  void AskWhetherBack(size_t shard);
  // Asynchronous: a shard of which nothing is wanted is asked how far it is.
  void Watch(size_t shard);
  void SendCommit();
  void OnCommit(GlobalStep step, absl::StatusOr<CommitStepReply> reply);
  void Advance();
  Grant* Find(size_t shard, GlobalStep step);
  // Whether the call may be made again.
  bool Survives(size_t shard, const absl::Status& error);
  void End(absl::Status status);
  uint32_t RequiredOf(GlobalStep step) const {
    return options_.required_of == nullptr ? required_ : options_.required_of(step);
  }
  GlobalStep limit() const { return options_.stop_at.value_or(options_.end); }

  const StepLoopOptions options_;
  const std::vector<PsControl*> shards_;
  Executor* const executor_;
  const Clock* const clock_;
  const std::function<void(const CommittedStep&)> on_commit_;
  StatusCallback on_end_;

  uint32_t required_;
  GlobalStep global_step_;
  GlobalStep next_grant_;
  std::optional<GlobalStep> held_from_;
  std::vector<StepProgress> progress_;
  std::vector<std::vector<Grant>> grants_;  // by shard: from global_step_ on, in order
  size_t waits_for_ = 0;        // the shard at which Proceed goes on looking for an open step
  std::vector<Retry> watches_;  // by shard
  std::vector<Retry> views_;    // by shard, of AskWhetherBack
  Retry commit_;
  bool ended_ = false;
};

}  // namespace lockstep::chief
