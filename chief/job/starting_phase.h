// Until the job trains: the shards are initialized, then enough workers become members.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "chief/job/job_state.h"
#include "chief/job/last_checkpoint_probe.h"
#include "chief/job/phase.h"
#include "chief/job/reminder.h"
#include "chief/loop/disk_thread.h"
#include "chief/recovery/shard_initializer.h"
#include "common/base/callback.h"

namespace lockstep::chief {

class StartingPhase final : public Phase {
 public:
  // `job` outlives the phase. Destroy it when its executor has ended or is closed, and its disk is
  // not busy.
  explicit StartingPhase(JobState* job);

  void Start() override;
  void Tick() override;
  void OnEvent(JobEvent event) override;
  void Stop() override;
  void Describe(JobFacts* facts) const override;

  // A ps may have moved.
  void SetNames(const std::vector<std::string>& shard_names) { initializer_.SetNames(shard_names); }
  bool is_disk_busy() const { return is_disk_busy_ || last_checkpoint_.is_busy(); }

 private:
  // A claim to the checkpoint folder that is made again.
  struct FailedClaim {
    absl::Duration next;  // as JobState::now
    std::function<absl::Status()> work;
    StatusCallback done;
  };

  CommandHooks MakeHooks();
  // Work on the checkpoint folder, which may hang: the lease is renewed meanwhile. `done` is not
  // called once the phase was left.
  void RunOnDisk(absl::AnyInvocable<absl::Status()> work, StatusCallback done);
  // The same for a claim to the folder. A job that goes back makes it again while storage fails.
  void ClaimOnDisk(std::function<absl::Status()> work, StatusCallback done);
  void OnInitialized(absl::StatusOr<InitializedShards> shards);
  // A standby does not wait for ps that have ended with the job.
  void FindEnd();
  void PlanAfresh(const std::string& why);
  void EndDoneJob();
  void RecordStart();
  // Of a job whose shards have copies, after its last step: what the shards cannot say.
  bool MayHaveLostLastVersion() const;
  void JudgeEnd(bool is_saved);
  // The checkpoints of earlier runs go out of the way of a job that begins, before it trains.
  bool BuriesEarlierRuns() const;
  // The workers may come.
  void AwaitWorkers();
  void Adopt();
  uint32_t NeededWorkers() const;
  // Of a job whose workers come and go: every shard knows who shares the first step.
  bool HasReplicas();

  JobState* const job_;
  const absl::Duration started_;
  ShardInitializer initializer_;
  Reminder reminder_;
  bool stopped_ = false;
  bool is_disk_busy_ = false;
  std::optional<FailedClaim> failed_claim_;
  absl::Status claim_failure_;  // of the last claim, which is made again
  DiskThread disk_;
  LastCheckpointProbe last_checkpoint_;
};

}  // namespace lockstep::chief
