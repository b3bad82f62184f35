// EpochState is a shard's state in one epoch: its variables, and the objects that change per step.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/base/thread_pool.h"
#include "ps/shard/gradient_receiver.h"
#include "ps/shard/memory_claims.h"
#include "ps/shard/save_record.h"
#include "ps/shard/shard.h"
#include "ps/shard/snapshot_store.h"
#include "ps/shard/state_receiver.h"
#include "ps/shard/step_driver.h"
#include "ps/shard/token_server.h"
#include "ps/shard/value_reader.h"

namespace lockstep::ps {

struct EpochState {
  // Objects of the shard for all its epochs; they outlive the epochs.
  struct Host {
    absl::Mutex* mu;
    const ShardOptions* options;
    ThreadPool* pool;
    PushCounts* counts;
    Readers* readers;
  };

  EpochState(const Host& host, EpochVariables of, HeldBudget budget, StepMachine steps,
             std::unique_ptr<TokenServer> token_server, std::optional<GlobalStep> end);

  const Host host;
  absl::Mutex& mu;     // the shard's
  MemoryClaim memory;  // released after the memory that it covers
  EpochVariables variables;
  // Scalars of the rules, by optimizer; they change only while no variable is closing.
  std::vector<std::vector<float>> scalars;
  std::vector<std::string> missing_slots;  // as in CreatedVariables, until reported

  StepMachine step ABSL_GUARDED_BY(mu);
  GradientReceiver receiver ABSL_GUARDED_BY(mu);
  SnapshotStore snapshots ABSL_GUARDED_BY(mu);
  VersionsToStore to_store ABSL_GUARDED_BY(mu);
  ValueReader reader ABSL_GUARDED_BY(mu);
  const std::unique_ptr<TokenServer> tokens ABSL_PT_GUARDED_BY(mu);  // only at the step shard
  const std::unique_ptr<StepDriver> driver ABSL_PT_GUARDED_BY(mu);
  Evaluations evaluations ABSL_GUARDED_BY(mu);
  std::shared_ptr<CopyTarget> copy ABSL_GUARDED_BY(mu);  // null: no step waits for a copy
  // Becomes `copy`, which is null, with the next step once it is ready. Null: there is none.
  std::shared_ptr<CopyTarget> new_copy ABSL_GUARDED_BY(mu);
  // The current step has no gradients, and waits until the copy knows of it.
  bool awaits_copy ABSL_GUARDED_BY(mu) = false;
  // Non-null only in a copy that was made while the job trains.
  const std::unique_ptr<StateReceiver> incoming ABSL_PT_GUARDED_BY(mu);
  SaveRecord saves ABSL_GUARDED_BY(mu);
  bool is_finished ABSL_GUARDED_BY(mu) = false;  // the job is over

  absl::Span<const float> ScalarsOf(const VariableEntry& entry) const {
    return scalars[entry.optimizer];
  }
  // The target of the primary's means, now or with the next step; null: it is alone.
  const std::shared_ptr<CopyTarget>& AnyCopy() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    return copy != nullptr ? copy : new_copy;
  }
  // Removes and returns the copy.
  std::shared_ptr<CopyTarget> TakeCopy() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    std::shared_ptr<CopyTarget> left = std::exchange(new_copy, nullptr);
    return copy != nullptr ? std::exchange(copy, nullptr) : left;
  }
  // True in a copy that cannot serve the workers yet.
  bool AwaitsState() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    return incoming != nullptr && incoming->AwaitsState(step.shard_step());
  }
  // The newest version that was to be saved and is in no checkpoint, as far as is known.
  std::optional<GlobalStep> Unsaved() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    std::optional<GlobalStep> newest = snapshots.NewestWithSlots();
    // Where workers have the variables, a version that is not kept here is not lost with the ps.
    if (!variables.config.is_replicated()) newest = std::max(newest, saves.requested());
    return newest > saves.saved() ? newest : std::nullopt;
  }
  // True if gradients are no longer counted.
  bool IsOver() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    return is_finished || driver->has_stopped();
  }
  // Drops the gradients of a worker that has left, for the current step, if workers keep the
  // variables. The step cannot close before its successor is a member, so the other workers know
  // the current step.
  void GiveBack(WorkerIndex worker, DeferredCallbacks* deferred) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
};

// Makes variables and slots, from their initializers or from a checkpoint. Slow for large variables
// and disks. INVALID_ARGUMENT naming the fault in the config; the errors of CheckpointReader.
absl::StatusOr<std::unique_ptr<EpochState>> CreateEpochState(const CreateVariablesRequest& request,
                                                             ShardIndex shard, bool is_copy,
                                                             const EpochState::Host& host);

}  // namespace lockstep::ps
