// What a chief that starts takes from the shards that it finds. Pure.
//
// It may be the first chief of the job, or come after one that died: then the shards have moved on,
// and the job goes on where they are. The step shard knows the global step; another shard may have
// closed the step at hand already. The workers that the shards know go on as if nothing had
// happened: they are members, until their leases end.
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
  uint64_t job = 0;                      // for shards that have none yet
  uint64_t least_term = 1;               // above those that this chief has had
  Incarnation chief;                     // of this start
  uint32_t chief_index = 0;              // in the cluster spec
  absl::Duration lease;                  // at the step shard; zero: none
  Epoch epoch;
  bool is_elastic = false;           // its workers come and go
  CreateVariablesRequest variables;  // without the command
  GlobalStep end;                    // of the job
  StartMode mode = StartMode::kBegin;
  // What a shard cannot read of the checkpoint, or has no memory for, it may read or have later.
  bool retries_creation = false;
  std::string earlier;  // the checkpoint that a beginning would bury; empty: none

  // The checkpoint is of the last step.
  bool is_done() const { return variables.start_step() >= end.value(); }
  bool has_copies() const { return variables.sync().ps_replicas() > 0; }
};

// Whether the shard has made a step beyond the spec's start.
bool HasTrained(const RecoverySpec& spec, const SetViewReply& view);

// FAILED_PRECONDITION naming a shard that has no variables, or is steps or an epoch apart from the
// step shard: they cannot go on together.
absl::Status CheckTogether(const RecoverySpec& spec, const std::vector<SetViewReply>& shards);

// LostVariablesError naming a shard that has no variables.
absl::Status CheckNoneLost(const RecoverySpec& spec, const std::vector<SetViewReply>& shards);

// From what each shard answers to GetView: job, term, epoch and members for SetView; the
// shard's index is left out. FAILED_PRECONDITION naming the shard: it is of another version than
// this chief; it belongs to another job than the others; it has trained, and this chief wants to
// start from a checkpoint.
absl::StatusOr<SetViewRequest> TakeCommand(const RecoverySpec& spec,
                                           const std::vector<SetViewReply>& seen);

// Where the job stands.
struct JobProgress {
  GlobalStep step;  // to grant first
  // Versions that an earlier chief had ordered to be kept, ascending: by every shard, by any.
  std::vector<GlobalStep> kept_by_all;
  std::vector<GlobalStep> kept;
  std::vector<EvaluatedVersion> evaluations;  // of earlier chiefs, ascending
  bool has_trained = false;                   // it goes on from the shards as they are
  bool has_made_all_steps = false;            // not of an asynchronous job
  // Every step was made, and what was to be done with the last version has been, as far as the
  // shards know. A copy that serves in place of its shard has kept no version: the checkpoint
  // folder says more.
  bool is_finished = false;
};

// From what each shard answers to SetView: the calls of an earlier chief are refused.
// FAILED_PRECONDITION: as CheckTogether, where a shard has trained (under kResume and kSucceed with
// exit code 138: the next start finds them so, and sets all of them back; LostVariablesError where
// one has no variables, after which a job with checkpoints starts again by itself); the job is to
// end before.
absl::StatusOr<JobProgress> FindProgress(const RecoverySpec& spec,
                                         const std::vector<SetViewReply>& shards);

}  // namespace lockstep::chief
