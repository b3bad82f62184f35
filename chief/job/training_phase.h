// Drives the steps, and decides what a lack of workers means for them.
#pragma once

#include <memory>

#include "absl/status/status.h"
#include "chief/job/group_keeper.h"
#include "chief/job/job_state.h"
#include "chief/job/phase.h"
#include "chief/job/progress_probe.h"
#include "chief/job/quorum_watch.h"
#include "chief/job/reminder.h"
#include "chief/sync/step_loop.h"

namespace lockstep::chief {

class TrainingPhase final : public Phase {
 public:
  // Enough members are confirmed. As StartingPhase.
  explicit TrainingPhase(JobState* job);

  void Start() override;
  void Tick() override;
  void OnEvent(JobEvent event) override;
  void Stop() override;
  void Describe(JobFacts* facts) const override;

 private:
  void OnCommit(const CommittedStep& step);
  void RecordStep(const CommittedStep& step);
  void LogProgress() const;
  void OnStepsEnded(absl::Status status);
  // Comes after the successors of those whose leases ended have been let in.
  void WatchQuorum();
  void WatchSynchronousQuorum();
  // Of a job whose workers come and go.
  void WatchReplicas();
  void FollowReplicas();
  void Remind();
  void OnProgress(const ProgressByShard& progress);

  JobState* const job_;
  StepLoop steps_;
  QuorumWatch quorum_;
  std::unique_ptr<GroupKeeper> group_;  // null: not a replicated job
  ProgressProbe probe_;
  ProgressByShard progress_;  // as of the last probe, when no step was committed since
  Reminder stall_reminder_;
  Reminder progress_line_;
  GlobalStep reported_step_;  // by the last progress line
  bool has_loss_warning_ = false;
  bool stopped_ = false;
};

}  // namespace lockstep::chief
