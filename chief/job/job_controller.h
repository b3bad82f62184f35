// One job from its start to its end: initializes the shards, waits for enough workers, drives the
// steps, evaluates and saves beside them, and tells everybody when it is over.
//
// Lives on the executor's thread. Nothing is waited for in silence: log and status name it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "chief/job/copy_watch.h"
#include "chief/job/job_state.h"
#include "chief/job/milestone_runner.h"
#include "chief/job/phase.h"
#include "chief/job/status_reporter.h"
#include "chief/service/worker_calls.h"
#include "common/base/callback.h"
#include "proto/job_control.pb.h"
#include "proto/status.pb.h"

namespace lockstep::chief {

class EndingPhase;
class StartingPhase;

class JobController final : private PhaseControl {
 public:
  // `shards` (in the cluster's order), `executor` and `clock` outlive the job. `clock` is a
  // RunningClock: no patience and no lease of a worker counts time in which this process stands
  // still. Calls in flight come back to the job through the executor: destroy the job when that has
  // ended or is closed.
  // `on_ready` is called when training begins, `on_end` once, when everybody was told: OK when the
  // job is done, or why it failed, with the exit code of ExitCodeFor.
  JobController(JobPlan plan, JobOptions options, std::vector<PsControl*> shards,
                Executor* executor, const Clock* clock, std::function<void()> on_ready,
                StatusCallback on_end);
  ~JobController() override;

  // Before Start: this is the job that `before` ran in this process. Takes over what happened to
  // it, for status and summary, its lock on the checkpoint folder and its lease at the step shard.
  void Inherit(JobController* before);
  // FolderClaim::owed_owner.
  std::optional<FolderOwner> owed_owner() const { return state_.claim->owed_owner(); }
  // It has ended before it commanded: another chief may lock the checkpoint folder.
  void ReleaseFolder() { state_.claim->ReleaseLock(); }
  // Another run follows: a save of this one publishes and deletes nothing from now on.
  void AbandonFolder() { state_.claim->Abandon(); }
  void Start();
  // About ten times a second.
  void Tick();
  // Addresses have changed, and of a job whose workers come and go perhaps the workers: shards and
  // workers are told. The connections to the ps have been moved already.
  void SetCluster(const ClusterSpec& cluster);
  // Ends the job from outside: the last committed step is saved and everybody told, then `on_end`
  // gets `why`. The first end counts, but for one that left the job: this one takes its place while
  // that still saves. So it does where the job has ended to go back to a checkpoint: those who know
  // of it are told.
  void Stop(absl::Status why);
  // The same, but ps and workers are not told: they wait for the next chief.
  void Leave(absl::Status why);

  // Its work on the checkpoint folder is not over, and destroying the job would wait for that.
  bool is_disk_busy() const;
  // A save is under way that may still make a checkpoint.
  bool may_save() const { return milestones_.may_save(); }
  // The step shard has accepted this chief.
  bool has_commanded() const { return state_.lease != nullptr; }
  // It has ended as StartPoint::kPlanAfresh: nobody was told anything.
  bool plans_afresh() const { return state_.initialized.start == StartPoint::kPlanAfresh; }
  WorkerCalls* worker_calls() { return &calls_; }
  const JobPlan& plan() const { return state_.inputs.plan; }
  const RunRecord& record() const { return state_.record; }
  void FillStatus(ProcessStatus* status) const;
  // What is committed, and what is saved of it.
  StopReply DescribeProgress() const;

 private:
  void Enter(std::unique_ptr<Phase> next) override;
  void End(JobEnd end) override;
  void Notify(JobEvent event) override;
  JobFacts Describe() const override;

  WorkerCalls::Hooks MakeHooks();
  // WorkerCalls::Hooks::share_of.
  std::function<StepShare(GlobalStep, WorkerIndex)> MakeShareHook();
  // Why the last committed step is not saved at the end.
  std::string DescribeUnsaved() const;

  JobState state_;
  const StatusReporter reporter_;
  MilestoneRunner milestones_;
  WorkerCalls calls_;
  CopyWatch copies_;
  std::vector<std::unique_ptr<Phase>>
      phases_;                         // every one that was entered; the last one is current
  StartingPhase* starting_ = nullptr;  // the first one
  EndingPhase* ending_ = nullptr;      // once entered
};

}  // namespace lockstep::chief
