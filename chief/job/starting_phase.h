// Until the job trains: the shards are initialized, then enough workers become members.
#pragma once

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "chief/job/job_state.h"
#include "chief/job/phase.h"
#include "chief/job/reminder.h"
#include "chief/recovery/shard_initializer.h"

namespace lockstep::chief {

class StartingPhase final : public Phase {
 public:
  // `job` outlives the phase, and so do the calls in flight: destroy it after the executor has
  // ended.
  explicit StartingPhase(JobState* job);

  void Start() override;
  void Tick() override;
  void OnEvent(JobEvent event) override;
  void Stop() override { stopped_ = true; }
  void Describe(JobFacts* facts) const override;

 private:
  CommandHooks MakeHooks();
  void OnInitialized(absl::StatusOr<InitializedShards> shards);
  void EndDoneJob();
  absl::Status RecordStart();
  void Adopt();
  uint32_t NeededWorkers() const;
  // Of a job whose workers come and go: every shard knows who shares the first step.
  bool HasReplicas();

  JobState* const job_;
  const absl::Duration started_;
  ShardInitializer initializer_;
  Reminder reminder_;
  bool stopped_ = false;
};

}  // namespace lockstep::chief
