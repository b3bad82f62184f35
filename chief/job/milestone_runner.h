// Evaluates and saves versions of the model beside training, and releases them afterwards.
//
// Lives on the executor's thread.
#pragma once

#include <deque>
#include <optional>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "chief/checkpoint/checkpointer.h"
#include "chief/job/job_state.h"
#include "chief/job/kept_version_probe.h"
#include "chief/leases/evaluation_queue.h"
#include "chief/sync/milestones.h"
#include "chief/sync/snapshots.h"
#include "chief/sync/step_loop.h"
#include "common/base/retry_policy.h"

namespace lockstep::chief {

class MilestoneRunner {
 public:
  // Tells `job`'s control when an evaluation or a save has ended, and ends the job for a newer
  // chief, or when the last version cannot be saved for as long as patience lasts.
  explicit MilestoneRunner(JobState* job);

  // The shards are initialized.
  void Start();
  // Repeats what is due. Several times a second.
  void Tick();
  // After the save that runs there is no other.
  void StopSaving();
  // The result of a save under way is ignored from now on.
  void Stop() { stopped_ = true; }

  Keep KeepAt(GlobalStep version) const;
  // Evaluates and saves a version for which that is due: now, or with `must` after those that run.
  void Begin(GlobalStep version, bool must);
  // The same for what earlier chiefs have left; the rest of that is released, versions that come
  // later when they are committed.
  void TakeUp(const JobProgress& progress);
  // Results have arrived.
  void TakeEvaluations();
  // A save outside of this class is told to the run's record, too.
  void RecordSave(GlobalStep version, const absl::StatusOr<std::string>& folder);

  // Null without a test set.
  EvaluationQueue* evaluations() { return evaluations_.has_value() ? &*evaluations_ : nullptr; }
  // The evaluation that runs, or null.
  const Evaluation* running() const;
  bool is_writing() const { return checkpointer_.has_value() && checkpointer_->busy(); }
  // A save runs that may still make a checkpoint.
  bool may_save() const { return checkpointer_.has_value() && checkpointer_->may_succeed(); }
  // A save runs, or the last one is to be repeated.
  bool is_saving() const { return is_writing() || !last_save_.error.ok(); }
  // Newest step of which there is a checkpoint.
  GlobalStep saved() const { return saved_; }

 private:
  // Of the last version, while it could not be saved.
  struct LastSave {
    absl::Status error;
    absl::Duration failing_since;
    RetryPolicy pauses{CallKind::kCommand,
                       {.first_pause = absl::Milliseconds(100), .longest_pause = absl::Seconds(2)}};
  };

  // A shard's, while the version is evaluated.
  void OnView(GlobalStep version, size_t shard, const SetViewReply& view);
  void AbandonEvaluation(size_t shard);
  void Save(GlobalStep version);
  void OnSaved(GlobalStep version, const absl::StatusOr<std::string>& folder);
  void RetryLastSave();

  JobState* const job_;
  const Milestones evaluate_at_;
  const Milestones save_at_;
  std::optional<EvaluationQueue> evaluations_;
  // From Start on.
  std::optional<Snapshots> snapshots_;
  std::optional<KeptVersionProbe> kept_;  // none: the shards have no copies
  std::optional<Checkpointer> checkpointer_;

  std::deque<GlobalStep> save_next_;  // while another is written
  // Versions beyond the step at which this chief took over that a shard keeps already.
  std::set<GlobalStep> kept_ahead_;
  GlobalStep saved_;
  LastSave last_save_;
  bool saves_ = true;
  bool stopped_ = false;
};

}  // namespace lockstep::chief
