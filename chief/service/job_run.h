// One job from its start to its end: brings up the shards, waits for enough workers, drives the
// steps, evaluates and saves beside them, and tells everybody when it is over.
//
// Lives on the executor's thread. Nothing is waited for in silence: log and status name it.
#pragma once

#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "chief/checkpoint/checkpointer.h"
#include "chief/leases/evaluation_queue.h"
#include "chief/loop/executor.h"
#include "chief/membership/membership.h"
#include "chief/membership/quorum.h"
#include "chief/plan/plan.h"
#include "chief/recovery/shard_initializer.h"
#include "chief/recovery/view_keeper.h"
#include "chief/service/drain.h"
#include "chief/service/ps_probe.h"
#include "chief/service/reminder.h"
#include "chief/service/run_record.h"
#include "chief/service/worker_calls.h"
#include "chief/sync/milestones.h"
#include "chief/sync/shard_calls.h"
#include "chief/sync/snapshots.h"
#include "chief/sync/step_loop.h"
#include "common/base/clock.h"
#include "proto/status.pb.h"

namespace lockstep::chief {

struct JobRunOptions {
  uint64_t job_id = 0;  // random, not 0
  // For shards that cannot be reached, and for workers at the start.
  absl::Duration patience = absl::Seconds(120);
  absl::Duration lease = absl::Seconds(5);
  // For saving the last committed step of a job that ends early, or that this chief leaves.
  absl::Duration drain = absl::Seconds(20);
  // A job that has lacked workers for this long is saved and given up.
  absl::Duration quorum_deadline = absl::InfiniteDuration();
  bool record_losses = false;  // those of short jobs always are
  PsProbe::Fetch fetch_status;
};

class JobRun {
 public:
  // `shards` (in the cluster's order), `executor` and `clock` outlive the run, and so do the calls
  // in flight: destroy the run after the executor has ended.
  // `on_ready` is called when training begins, `on_end` once, when everybody was told: OK when the
  // job is done, or why it failed, with the exit code of ExitCodeFor.
  JobRun(JobPlan plan, JobRunOptions options, std::vector<PsControl*> shards, Executor* executor,
         const Clock* clock, std::function<void()> on_ready,
         std::function<void(absl::Status)> on_end);

  void Start();
  // About ten times a second.
  void Tick();
  // Ends the job from outside: the last committed step is saved and everybody told, then `on_end`
  // gets `why`.
  void Stop(absl::Status why) { EndAfterSaving(std::move(why), Told::kEverybody); }
  // The same, but ps and workers are not told: they wait for the next chief.
  void Leave(absl::Status why) { EndAfterSaving(std::move(why), Told::kNobody); }

  WorkerCalls* worker_calls() { return &calls_; }
  const JobPlan& plan() const { return plan_; }
  const RunRecord& record() const { return record_; }
  void FillStatus(ProcessStatus* status) const;

 private:
  // kCompleting: all steps are committed, and the last version is evaluated and saved. kSaving: the
  // job ends early, and its last committed step is saved.
  enum class Phase {
    kInitializing,
    kGathering,
    kTraining,
    kCompleting,
    kSaving,
    kTelling,
    kReleasing,
    kOver
  };
  // Who is told that the job is over. A ps that is not told keeps the model for the next chief.
  enum class Told { kNobody, kWorkers, kEverybody };

  // To the log, the status and the summary.
  void Warn(std::string text);

  // Start.
  void OnInitialized(absl::StatusOr<InitializedShards> shards);
  void EndDoneJob();
  absl::Status NoteStart();
  void Adopt();
  void OnMembersChanged();
  void OnConfirmed();
  void BeginTraining();
  StepLoopOptions MakeStepOptions() const;
  CheckpointerOptions MakeCheckpointerOptions() const;
  uint32_t NeededWorkers() const;
  std::string StartWaitsFor() const;
  void WatchStart();

  // Training.
  Keep KeepAt(GlobalStep version) const;
  void OnCommit(const CommittedStep& step);
  // Evaluates and saves a version for which that is due: now, or with `must` after those that are
  // under way.
  void Milestone(GlobalStep version, bool must);
  // What the chief before has left undone.
  void TakeUpMilestones();
  void TakeEvaluations();
  void Save(GlobalStep version);
  void OnSaved(GlobalStep version, const absl::StatusOr<std::string>& folder);
  void OnStepsEnded(absl::Status status);
  void CompleteIfDone();
  // The last version could not be saved: again, for as long as patience lasts.
  void RetryLastSave(const absl::Status& why);
  void WatchLastSave();
  void WatchQuorum();
  void WatchShortage(bool is_short);
  void WatchEvaluationQuorum();
  ReplicaCounts CountReplicas(GlobalStep step);
  void OnProbed(const PsPending& pending);
  bool IsStalled(const PsPending& pending);
  void WatchTraining();

  // End.
  void EndAfterSaving(absl::Status outcome, Told told);
  void DrainIfIdle();
  void OnDrained(const absl::StatusOr<Drain::Saved>& saved);
  void WatchDrain();
  void FinishUnsaved(const absl::Status& why);
  bool MaySave() const;
  void NoteSave(GlobalStep version, const absl::StatusOr<std::string>& folder);
  void Finish(absl::Status outcome, Told told = Told::kEverybody);
  void WatchEnd();
  void ReleaseShards();
  void End();

  std::string State(absl::Duration now) const;
  std::string WaitingFor(absl::Duration now) const;
  std::string TrainingWaitsFor(absl::Duration now) const;
  std::string DescribeUnreachable(absl::Duration now) const;
  std::string DescribeNeed() const;
  std::string DescribeShortage(absl::Duration now) const;
  bool MustWait(absl::Duration now) const;
  std::string CompletingWaitsFor(absl::Duration now) const;
  std::string SavingWaitsFor() const;
  bool IsSaving() const { return checkpointer_->busy() || !last_save_.error.ok(); }
  void FillMember(size_t worker, absl::Duration now, MemberStatus* member) const;
  void FillShard(size_t index, ShardSummary* shard) const;

  const JobPlan plan_;
  const JobRunOptions options_;
  const std::vector<PsControl*> shards_;
  const std::vector<std::string> shard_names_;
  Executor* const executor_;
  const Clock* const clock_;
  const std::function<void()> on_ready_;
  const std::function<void(absl::Status)> on_end_;
  const Milestones evaluate_at_;
  const Milestones save_at_;
  const QuorumRules quorum_rules_;
  const std::vector<uint32_t> shard_variables_;
  const uint32_t variables_per_gradient_;
  const absl::Duration started_;

  Phase phase_ = Phase::kInitializing;
  RunRecord record_;
  Membership membership_;
  std::optional<EvaluationQueue> evaluations_;
  WorkerCalls calls_;
  PsProbe probe_;
  ShardInitializer initializer_;
  InitializedShards initialized_;
  // From kGathering on.
  std::optional<ViewKeeper> views_;
  std::optional<Snapshots> snapshots_;
  std::optional<Checkpointer> checkpointer_;
  // From kTraining on.
  std::optional<StepLoop> steps_;
  std::deque<GlobalStep> save_next_;  // while another is written
  GlobalStep saved_;                  // newest step of which there is a checkpoint
  // Of the last version, while it could not be saved.
  struct LastSave {
    absl::Status error;
    absl::Duration failing_since;
    Retry retry;
  } last_save_;
  std::optional<Drain> drain_;
  absl::Duration drain_deadline_;

  Reminder start_reminder_;
  Reminder stall_reminder_;
  Reminder progress_line_;
  GlobalStep reported_step_;
  bool told_of_loss_ = false;  // that it is not finite
  std::string pending_at_ps_;  // what the last probe told
  // Probes in a row that found every worker waiting for a token, at this step, the members the
  // same.
  struct Stall {
    GlobalStep step;
    uint64_t membership = 0;
    int probes = 0;
    friend bool operator==(const Stall&, const Stall&) = default;
  } stall_;
  // As of the last tick; until then of a job that lacks nobody.
  Quorum quorum_{.possible = std::numeric_limits<int64_t>::max()};
  std::optional<absl::Duration> short_since_;  // workers are lacking

  absl::Status outcome_;
  Told told_ = Told::kEverybody;
  absl::Duration end_deadline_;
  bool releases_shards_ = false;
  std::optional<ShardCalls> release_;  // in kReleasing: Finish
};

}  // namespace lockstep::chief
