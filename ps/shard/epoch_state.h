// Everything that a shard hosts in one epoch: its variables and the rooms around them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/optimizer/schedule.h"
#include "common/optimizer/update_rule.h"
#include "ps/ledger/push_ledger.h"
#include "ps/shard/catalog.h"
#include "ps/shard/epoch_config.h"
#include "ps/shard/evaluations.h"
#include "ps/shard/held_budget.h"
#include "ps/shard/orders.h"
#include "ps/shard/reassembly_buffer.h"
#include "ps/shard/shard.h"
#include "ps/shard/snapshot_store.h"
#include "ps/shard/staleness_histogram.h"
#include "ps/shard/variable_entry.h"
#include "ps/step/step_machine.h"
#include "ps/tokens/token_queue.h"

namespace lockstep::ps {

struct AsynchronousState {
  LearningRateSchedule learning_rate;
  std::optional<GlobalStep> end;
  // Guarded by the shard's lock.
  StalenessHistogram staleness;
  bool paused = false;   // until the chief has what it wants to be kept
  bool stopped = false;  // the last step has been applied
};

// Guarded by the shard's lock, except for what belongs to the thread that closes a variable (see
// ps/step) and what is constant.
struct EpochState {
  EpochState(std::shared_ptr<const EpochConfig> shared_config, Catalog catalog, HeldBudget budget,
             StepMachine step)
      : shared_config(std::move(shared_config)),
        config(*this->shared_config),
        shared_catalog(std::make_shared<const Catalog>(std::move(catalog))),
        catalog(*shared_catalog),
        ledger(this->catalog.size()),
        budget(std::move(budget)),
        step(std::move(step)) {}

  // Constant.
  const std::shared_ptr<const EpochConfig> shared_config;
  const EpochConfig& config;
  const std::shared_ptr<const Catalog> shared_catalog;
  const Catalog& catalog;
  LentMemory shared_values;                       // empty: they are on the heap
  std::optional<AsynchronousState> asynchronous;  // set in an asynchronous job
  std::unique_ptr<const UpdateRule> rule;
  std::unique_ptr<const UpdateRule> averaged_rule;  // of variables with an average; may be null
  std::vector<std::unique_ptr<VariableEntry>> variables;  // in the catalog's order
  std::vector<std::string> missing_slots;  // as in CreatedVariables, until they have been told

  // Changes only while no variable is closing.
  std::vector<float> scalars;

  PushLedger ledger;
  ReassemblyBuffer reassembly;
  HeldBudget budget;
  StepMachine step;
  SnapshotStore snapshots;
  Evaluations evaluations;
  bool save_failed = false;                // the last one
  std::vector<SmallStatistic> statistics;  // of the step at hand
  ClosedStep last_closed;
  uint64_t extra_bytes = 0;    // Variable::ExtraBytes of all, when each was published last
  bool is_completing = false;  // a thread is between the last publication and the next step
  bool is_copied = false;      // a save copies the newest version: nothing is granted meanwhile

  // Step shard; null elsewhere.
  std::unique_ptr<TokenQueue> tokens;
  GlobalStep global_step;
};

// Makes variables and slots, from their initializers or from a checkpoint. Slow: for large
// variables and disks. INVALID_ARGUMENT naming what is wrong with the config; the errors of
// CheckpointReader.
absl::StatusOr<std::unique_ptr<EpochState>> CreateEpochState(
    std::shared_ptr<const EpochConfig> shared_config, ShardIndex shard,
    const ShardOptions& options);

}  // namespace lockstep::ps
