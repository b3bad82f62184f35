// JobState is the state that all phases of a job share. Lives on the executor's thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "chief/checkpoint/checkpointer.h"
#include "chief/checkpoint/folder_claim.h"
#include "chief/job/phase.h"
#include "chief/job/run_record.h"
#include "chief/loop/executor.h"
#include "chief/membership/elastic_replicas.h"
#include "chief/membership/membership.h"
#include "chief/plan/plan.h"
#include "chief/recovery/lease_keeper.h"
#include "chief/recovery/shard_initializer.h"
#include "chief/recovery/view_keeper.h"
#include "chief/service/worker_calls.h"
#include "chief/sync/step_loop.h"
#include "common/base/callback.h"
#include "common/base/clock.h"
#include "common/client/ps_control.h"
#include "common/config/known_cluster_specs.h"

namespace lockstep::chief {

class MilestoneRunner;
class StatusReporter;

struct JobOptions {
  uint64_t job_id = 0;       // random, not 0
  Incarnation incarnation;   // of this start
  uint64_t run = 1;          // of the job, by this chief, from 1
  uint32_t chief_index = 0;  // in the cluster spec
  std::string host;          // where this chief runs
  // The longest wait for shards that cannot be reached, and for workers at the start.
  absl::Duration patience = absl::Seconds(120);
  // Of the workers at this chief, and of this chief at the step shard.
  absl::Duration lease = absl::Seconds(5);
  // For saving the last committed step of a job that ends early, or that this chief leaves.
  absl::Duration drain = absl::Seconds(20);
  // A job that has lacked workers for this long is saved and given up.
  absl::Duration quorum_deadline = absl::InfiniteDuration();
  // The cluster specs that this chief knows; null: the plan's.
  std::shared_ptr<const KnownClusterSpecs> clusters = nullptr;
  bool record_losses = false;   // those of short jobs always are
  bool waits_for_disk = false;  // CheckpointerOptions::waits_for_disk
  // For a job whose shards have copies: their current places, by shard.
  std::function<std::vector<ShardPlace>()> shard_places = nullptr;
  // For such a job, once it is over: the other places that have not answered that, with reasons.
  std::function<std::string()> unfinished_places = nullptr;
  // For a chief that stood by: OK if it may announce a view of this term.
  std::function<absl::Status(uint64_t term)> may_take = nullptr;
  // For the same: called when the step shard has accepted this chief's view of this term.
  std::function<void(uint64_t term)> on_taken = nullptr;
  const StandbyCallers* callers = nullptr;  // before the job; outlives it
  // Runs the lease at the step shard, which the next run of the job inherits. Null: `executor`.
  Executor* lease_executor = nullptr;
  // Counts the time in which this process stands still, too. It measures the lease at the step
  // shard, how old the answers of shards are, how long a ps has heard nothing, and the rates in
  // status and summary. Null: the job's clock.
  const Clock* real_clock = nullptr;
};

struct JobInputs {
  JobPlan plan;
  JobOptions options;
  std::vector<PsControl*> shards;        // in the cluster's order
  std::vector<std::string> shard_names;  // "ps 0 (host:port)", as of now
  Executor* executor = nullptr;
  // Does not count the time in which this process stands still: that is nobody's silence.
  const Clock* clock = nullptr;
  std::function<void()> on_ready;  // training begins
  StatusCallback on_end;           // once
};

// The controller owns it and the objects it points to. All of them outlive the phases.
struct JobState {
  explicit JobState(JobInputs in);

  absl::Duration now() const { return inputs.clock->Monotonic(); }
  const Clock* real_clock() const {
    return inputs.options.real_clock != nullptr ? inputs.options.real_clock : inputs.clock;
  }
  // Writes a warning to the log, the status and the summary.
  void Warn(std::string text);
  // Ends the job when workers have been lacking (`is_short`) for the quorum deadline.
  void WatchShortage(bool is_short);
  // Of an elastic job: sends the newest replica view to the record, the log and every shard.
  void AnnounceReplicas();

  JobInputs inputs;
  Membership membership;
  std::unique_ptr<ElasticReplicas> replicas;  // null: the workers of the cluster spec
  RunRecord record;
  PhaseControl* control = nullptr;
  MilestoneRunner* milestones = nullptr;
  WorkerCalls* calls = nullptr;
  const StatusReporter* reporter = nullptr;
  const std::unique_ptr<FolderClaim> claim;  // to the job's checkpoint folder
  bool has_begun = false;                    // training

  // Set once the step shard has accepted this chief. A job that goes back keeps it.
  std::shared_ptr<LeaseKeeper> lease;
  // The command of the newest view sent to the step shard, which may not have it yet.
  Command announced;
  // Set once the shards are initialized.
  InitializedShards initialized;
  std::optional<ViewKeeper> views;

 private:
  std::optional<absl::Duration> short_since_;
};

StepLoopOptions MakeStepOptions(const JobState& job);
CheckpointerOptions MakeCheckpointerOptions(JobState* job);
// The reply to tasks that register, as of the chief's command.
RegisterTaskReply MakeRegistration(const JobState& job);

}  // namespace lockstep::chief
