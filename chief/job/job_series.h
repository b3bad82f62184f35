// A job that outlives the loss of its state: each time that a ps has lost its variables, every ps
// goes back to the newest checkpoint, and the job goes on from there in a new epoch. Workers
// register again. A job without a checkpoint folder ends instead.
//
// With StartMode::kSucceed the chief stands by first: it waits until no chief commands, then runs
// the job. If another chief takes command before it, it waits again.
//
// Lives on the executor's thread; checkpoints are read on another.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "chief/job/job_controller.h"
#include "chief/job/standby.h"
#include "chief/loop/closable_executor.h"
#include "chief/loop/disk_thread.h"
#include "chief/membership/standby_callers.h"
#include "chief/service/answer.h"
#include "common/base/ids.h"
#include "proto/job_control.pb.h"

namespace lockstep::chief {

class JobSeries {
 public:
  // As JobController. The executor outlives the series, and calls in flight end before it does. A
  // plan of StartMode::kSucceed stands by.
  JobSeries(JobPlan plan, JobOptions options, std::vector<PsControl*> shards, Executor* executor,
            const Clock* clock, std::function<void()> on_ready, StatusCallback on_end);

  void Start();
  void Tick();
  // As JobController. Also of a chief that stands by.
  void SetCluster(const ClusterSpec& cluster);
  // As JobController; while a checkpoint is being read, those are told who know of the job. While
  // another chief commands, nobody is told.
  void Stop(absl::Status why);
  // As JobController.
  void Leave(absl::Status why);
  // The same as Stop, for an operator, who hears of the end when everybody was told. Harmless when
  // repeated. RESOURCE_EXHAUSTED: too many such calls wait. UNAVAILABLE as worker_calls().
  void StopForOperator(Answer<StopReply> answer);

  // UNAVAILABLE naming the chief that commands, while this one stands by.
  absl::StatusOr<WorkerCalls*> worker_calls();
  // The same for a call of this process, which is noted while this chief stands by or takes over:
  // the process lives.
  absl::StatusOr<WorkerCalls*> CallsFor(WorkerIndex worker, Incarnation incarnation);
  void GetStatus(Callback<ProcessStatus> done);
  // The one that runs, or ran last; null while none has run.
  JobController* job() { return job_.get(); }

 private:
  struct EndedRun {
    std::unique_ptr<JobController> job;
    ClosableExecutor* executor;
  };

  void Add(JobPlan plan);
  // Runs that another one has followed.
  void FreeEnded();
  void StandBy();
  // The job's last checkpoint in its folder; empty: there is none. Not called
  // before the last call has ended.
  void FindEnd(Callback<std::string> done);
  void TakeCommand();
  bool IsStandingBy() const { return standby_ != nullptr && standby_->is_waiting(); }
  // Calls are those of the job, not of a chief that another one precedes.
  bool HasCommand() const { return standby_ == nullptr || (!IsStandingBy() && job_ != nullptr); }
  void OnEnd(absl::Status outcome);
  // Plans where the job starts next, until that is known or patience is over.
  void PlanAgain(std::string lost);
  void ReadPlan();
  // The save of the run that has ended may still make a newer checkpoint. Not for longer than a
  // chief has for its last save (JobOptions::drain): then the job goes back without it.
  bool AwaitsSave();
  // The storage of the checkpoints has failed: the plan is to be read again.
  bool MayReadAgain(const absl::Status& failure);
  void BeginNextPlan(absl::StatusOr<JobPlan> plan);
  // Once, for good.
  void End(absl::Status outcome);
  StopReply DescribeEnd() const;
  // While another chief commands: ends with `why`, and returns true.
  bool EndsStandby(const absl::Status& why);

  JobPlan plan_;  // of the first job; the cluster as of now
  JobOptions options_;
  const std::vector<PsControl*> shards_;
  Executor* const executor_;
  const Clock* const clock_;
  const std::function<void()> on_ready_;
  StatusCallback on_end_;
  // Of each run the job has been in. All are kept: answers to calls of runs that have ended may
  // still come, and are dropped by an executor that is closed.
  std::deque<ClosableExecutor> executors_;
  std::unique_ptr<JobController> job_;  // of the last run; null: there was none
  std::vector<EndedRun> ended_;         // until they can be freed
  std::unique_ptr<Standby> standby_;    // null: it does not stand by
  StandbyCallers callers_;
  bool is_between_ = false;        // the last one has ended, the next one's start is being read
  std::string lost_;               // of the last one: why the next one goes back
  absl::Duration planning_since_;  // monotonic
  absl::Duration save_deadline_;   // monotonic
  std::optional<absl::Duration> next_read_;  // of the plan; nullopt: none is to be repeated
  std::string waiting_for_;                  // what it waits for; empty: it is being read
  bool is_stopped_ = false;                  // the job does not go on
  std::vector<Answer<StopReply>> stops_;     // operators who wait for the end
  std::optional<absl::Status> outcome_;      // after the end
  DiskThread disk_;
  DiskThread end_disk_;  // of FindEnd, which may hang while the other one plans
};

}  // namespace lockstep::chief
