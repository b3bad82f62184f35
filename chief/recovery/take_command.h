// Derives a starting chief's view and the job's progress from the shards' answers. Pure.
//
// The chief is the first one of the job, or follows one that died. In the second case the job
// continues at the steps of the shards. The step shard knows the global step; another shard may
// have closed the current step already. The workers that the shards know continue as members until
// their leases end.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "chief/checkpoint/start_mode.h"
#include "common/base/ids.h"
#include "proto/ps.pb.h"

namespace lockstep::chief {

struct RecoverySpec {
  std::vector<std::string> shard_names;  // "ps 1 (host:port)"
  uint64_t job = 0;                      // for shards that have no job yet
  uint64_t least_term = 1;               // above the terms that this chief has had
  Incarnation chief;                     // of this start
  uint32_t chief_index = 0;              // in the cluster spec
  absl::Duration lease;                  // at the step shard; zero: none
  Epoch epoch;
  bool is_elastic = false;           // its workers come and go
  CreateVariablesRequest variables;  // without the command
  GlobalStep end;                    // of the job
  StartMode mode = StartMode::kBegin;
  // Creation is retried if a shard cannot read the checkpoint or lacks memory: that may pass.
  bool retries_creation = false;
  std::string earlier;  // a checkpoint of an earlier run; empty: none

  // The checkpoint is of the last step.
  bool is_done() const { return variables.start_step() >= end.value(); }
  bool has_copies() const { return variables.sync().ps_replicas() > 0; }
};

// Returns whether the shard has made a step beyond the spec's start.
bool HasTrained(const RecoverySpec& spec, const SetViewReply& view);

// FAILED_PRECONDITION naming a shard that has no variables, or is steps or an epoch apart from the
// step shard: they cannot continue together.
absl::Status CheckTogether(const RecoverySpec& spec, const std::vector<SetViewReply>& shards);

// LostVariablesError naming a shard that has no variables.
absl::Status CheckNoneLost(const RecoverySpec& spec, const std::vector<SetViewReply>& shards);

// `seen`: the shards' answers to GetView. Returns job, term, epoch and members for SetView, without
// the shard's index. FAILED_PRECONDITION naming the shard: it is of another version than this
// chief; it belongs to another job than the others; it has trained, and this chief starts from a
// checkpoint.
absl::StatusOr<SetViewRequest> TakeCommand(const RecoverySpec& spec,
                                           const std::vector<SetViewReply>& seen);

// The progress of the job.
struct JobProgress {
  GlobalStep step;  // to grant first
  // Versions kept for an earlier chief, ascending: by every shard, and by any shard.
  std::vector<GlobalStep> kept_by_all;
  std::vector<GlobalStep> kept;
  std::vector<EvaluatedVersion> evaluations;  // of earlier chiefs, ascending
  bool has_trained = false;                   // it goes on from the shards as they are
  bool has_made_all_steps = false;            // not of an asynchronous job
  // Every step was made, and the last version was evaluated and saved, as far as the shards know. A
  // copy that serves in place of its shard has kept no version: the checkpoint folder says more.
  bool is_finished = false;
};

// `shards`: their answers to SetView, after which they refuse the calls of an earlier chief.
// FAILED_PRECONDITION: the job's end is before its progress; or as CheckTogether, if a shard has
// trained. Under kResume and kSucceed the latter has exit code 138: the next start sets all shards
// back. There it is LostVariablesError if a shard has no variables; a job with checkpoints then
// starts again by itself.
absl::StatusOr<JobProgress> FindProgress(const RecoverySpec& spec,
                                         const std::vector<SetViewReply>& shards);

}  // namespace lockstep::chief
