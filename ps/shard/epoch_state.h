// What a shard hosts in one epoch: its variables, and who owns what changes from step to step.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/base/thread_pool.h"
#include "ps/shard/gradient_receiver.h"
#include "ps/shard/memory_claims.h"
#include "ps/shard/shard.h"
#include "ps/shard/snapshot_store.h"
#include "ps/shard/state_receiver.h"
#include "ps/shard/step_driver.h"
#include "ps/shard/token_server.h"
#include "ps/shard/value_reader.h"

namespace lockstep::ps {

struct EpochState {
  // What the shard has for all its epochs, and outlives them.
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
  MemoryClaim memory;  // given back after what is in it
  EpochVariables variables;
  // Of the rules, by optimizer; they change only while no variable is closing.
  std::vector<std::vector<float>> scalars;
  std::vector<std::string> missing_slots;  // as in CreatedVariables, until they have been told

  StepMachine step ABSL_GUARDED_BY(mu);
  GradientReceiver receiver ABSL_GUARDED_BY(mu);
  SnapshotStore snapshots ABSL_GUARDED_BY(mu);
  VersionsToStore to_store ABSL_GUARDED_BY(mu);
  ValueReader reader ABSL_GUARDED_BY(mu);
  const std::unique_ptr<TokenServer> tokens ABSL_PT_GUARDED_BY(mu);  // null but at the step shard
  const std::unique_ptr<StepDriver> driver ABSL_PT_GUARDED_BY(mu);
  Evaluations evaluations ABSL_GUARDED_BY(mu);
  std::shared_ptr<CopyTarget> copy ABSL_GUARDED_BY(mu);  // null: nobody waits for a copy
  // Takes the place of `copy`, which is null, with the next step once it is ready; null: there is
  // none.
  std::shared_ptr<CopyTarget> new_copy ABSL_GUARDED_BY(mu);
  // The step at hand has no gradients, and waits until the copy knows of it.
  bool awaits_copy ABSL_GUARDED_BY(mu) = false;
  // Of a copy that was made while the job trains; otherwise null.
  const std::unique_ptr<StateReceiver> incoming ABSL_PT_GUARDED_BY(mu);
  bool save_failed ABSL_GUARDED_BY(mu) = false;  // the last one
  bool is_finished ABSL_GUARDED_BY(mu) = false;  // the job is over

  absl::Span<const float> ScalarsOf(const VariableEntry& entry) const {
    return scalars[entry.optimizer];
  }
  // Where the primary sends means, now or with the next step; null: it is alone.
  const std::shared_ptr<CopyTarget>& AnyCopy() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    return copy != nullptr ? copy : new_copy;
  }
  // Leaves the copy, and returns it.
  std::shared_ptr<CopyTarget> TakeCopy() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    std::shared_ptr<CopyTarget> left = std::exchange(new_copy, nullptr);
    return copy != nullptr ? std::exchange(copy, nullptr) : left;
  }
  // A copy that cannot serve the workers yet.
  bool AwaitsState() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    return incoming != nullptr && incoming->AwaitsState(step.shard_step());
  }
  // Gradients are no longer counted.
  bool IsOver() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    return is_finished || driver->has_stopped();
  }
  // The worker has left. Where workers keep the variables, what it has pushed for the step at hand
  // counts no more: the step cannot close before its successor is there, so that the other workers
  // know which step that is.
  void GiveBack(WorkerIndex worker, DeferredCallbacks* deferred) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
};

// Makes variables and slots, from their initializers or from a checkpoint. Slow: for large
// variables and disks. INVALID_ARGUMENT naming what is wrong with the config; the errors of
// CheckpointReader.
absl::StatusOr<std::unique_ptr<EpochState>> CreateEpochState(const CreateVariablesRequest& request,
                                                             ShardIndex shard, bool is_copy,
                                                             const EpochState::Host& host);

}  // namespace lockstep::ps
