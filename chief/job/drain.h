// Saves the last committed step of a job that goes on without this chief, or ends with it.
//
// A checkpoint needs one version that every shard has whole. So a new term withdraws the grants:
// nothing more is taken, as if this chief had died and come back. Where no shard has begun the step
// at hand, the version before it is saved at once, however long the workers need for their next
// gradients. Where one has, the step is granted once more, alone, and the version after it saved.
// A shard that waits for no gradient of the step has not begun it, though it has closed it: its
// variables are the same before and after.
// Where the workers keep the variables, the first version is saved that no shard has passed.
// In an asynchronous job the shards go on, and each saves what it has.
//
// Lives on the executor's thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "chief/checkpoint/checkpointer.h"
#include "chief/job/job_facts.h"
#include "chief/loop/executor.h"
#include "chief/sync/retry.h"
#include "chief/sync/shard_calls.h"
#include "chief/sync/step_loop.h"
#include "common/base/callback.h"
#include "common/base/clock.h"
#include "common/client/ps_control.h"
#include "common/turns/gradient_turns.h"

namespace lockstep::chief {

struct DrainOptions {
  SetViewRequest view;  // of this chief; its members do not matter
  std::vector<std::string> shard_names;
  GlobalStep saved;                  // of a step that is not later there is nothing to save
  std::vector<GradientTurns> turns;  // of each shard
  // The shards can save no other versions than those that a grant kept.
  bool saves_kept_alone = false;
  // Of the job; their command and the step to start from do not matter.
  StepLoopOptions steps;
  CheckpointerOptions checkpoints;
};

class Drain {
 public:
  // What there is at the end: the step, and the checkpoint that was written; none where there was
  // nothing to save.
  struct Saved {
    GlobalStep step;
    std::string folder;
  };

  // `shards`, `executor` and `clock` outlive the calls in flight: destroy the drain after the
  // executor has ended or is closed. `on_done` is called once: an error is one that repeating does
  // not repair, ABORTED for a newer chief among them. A save that fails is repeated until Stop.
  Drain(DrainOptions options, std::vector<PsControl*> shards, Executor* executor,
        const Clock* clock, Callback<Saved> on_done);

  void Start();
  // Repeats what is due. Several times a second.
  void Tick();
  // Makes no further calls and does not call `on_done`.
  void Stop();
  // That of the save. A shard that has accepted its term, its answer lost, obeys no older one.
  const Command& command() const { return options_.view.command(); }
  // Saving waits for a step that no shard had begun, so for gradients of all workers that it needs.
  bool needs_next_step() const { return needs_next_step_; }
  // What it waits for: a shard that does not answer, the disk.
  DrainFacts Describe() const;

 private:
  using Call = ShardCalls::Call;

  void Begin(Call call, void (Drain::*next)());
  void TakeTerm();
  void TakeOthers();
  void ChooseStep();
  void KeepNow();
  // Whether a shard may have taken something of the step at hand.
  bool HasBegun() const;
  // The step at hand of the shard that is ahead of the others.
  GlobalStep NewestClosed() const;
  void CloseSteps();
  void Save();
  void OnSaved(absl::StatusOr<std::string> folder);
  void End(absl::StatusOr<Saved> result);

  DrainOptions options_;
  const std::vector<PsControl*> shards_;
  Executor* const executor_;
  const Clock* const clock_;
  Callback<Saved> on_done_;

  std::vector<SetViewReply> seen_;  // by shard
  // One after another; all are kept, for answers that come late.
  std::vector<std::unique_ptr<ShardCalls>> calls_;
  std::optional<StepLoop> steps_;  // closes what a shard has begun
  std::optional<Checkpointer> checkpointer_;
  GlobalStep step_;  // to save
  Retry save_;
  absl::Status save_error_;
  bool needs_next_step_ = false;
  bool ended_ = false;
};

}  // namespace lockstep::chief
