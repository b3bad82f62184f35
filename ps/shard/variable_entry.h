// The variables that a shard hosts in one epoch, each with what belongs to it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/optimizer/update_rule.h"
#include "common/optimizer_proto/optimizer_rules.h"
#include "common/transport/lent_memory.h"
#include "common/update/dense_update.h"
#include "common/update/variable.h"
#include "ps/shard/catalog.h"
#include "ps/shard/copy_on_write.h"
#include "ps/shard/epoch_config.h"
#include "ps/shard/variable_initializer.h"

namespace lockstep::ps {

// A table between the thread that closes its variable and those that copy rows for pulls. The lock
// is held for as long as a few megabytes take to copy, or a step to apply; beneath it no other one
// is taken.
struct SharedTable {
  explicit SharedTable(std::shared_ptr<Table> of) : table(std::move(of)) {}

  const std::shared_ptr<Table> table;
  // For writing while a version is made, for reading while rows are copied.
  mutable absl::Mutex mutex;
};

struct VariableEntry {
  Variable variable;
  const UpdateRule* rule;  // not its own
  bool is_averaged = false;
  size_t optimizer = 0;                          // whose rule that is, as EpochConfig counts them
  std::shared_ptr<SharedTable> table = nullptr;  // the variable's, if it is one
  size_t num_chunks = 0;  // that can be applied before the rest has come; 0: none can
  // What kept versions copy of the slots, in their order, and of the table before these change.
  std::vector<std::unique_ptr<CopyOnWrite>> slot_copies = {};
  std::unique_ptr<CopyOnWrite> table_copies = nullptr;

  // Guarded by the shard's lock.
  // With chunks applied. Those who have claimed one apply it without the lock; once the gradients
  // are taken the update belongs to the operation that took them.
  std::optional<DenseUpdate> early = {};
};

// Constant but for the values, slots and entries, which the shard's lock guards as Variable says.
struct EpochVariables {
  EpochConfig config;
  Catalog catalog;
  std::vector<OptimizerRules> optimizers;                    // as EpochConfig counts them
  std::vector<std::vector<float>> start_scalars = {};        // as EpochState has them, at the start
  LentMemory shared_values = {};                             // empty: they are on the heap
  std::vector<std::unique_ptr<VariableEntry>> entries = {};  // in the catalog's order
};

// How a variable is updated.
struct RuleOfVariable {
  const UpdateRule* rule;
  bool is_averaged = false;
  size_t optimizer = 0;
};

using RuleOfEntry = absl::FunctionRef<const UpdateRule&(const CatalogEntry&)>;

// How many shared buffers its values take, where workers of this host read them.
size_t NumSharedBuffers(const CatalogEntry& entry, const UpdateRule& rule);

// In these shared buffers, or on the heap. `missing` gets the slots that a checkpoint lacks. The
// errors of CheckpointReader.
absl::StatusOr<std::unique_ptr<VariableEntry>> MakeVariableEntry(
    const CatalogEntry& entry, const VariableInitializer& first, const RuleOfVariable& of,
    const EpochConfig& config, std::vector<SharedBuffer> shared, std::vector<std::string>* missing);

}  // namespace lockstep::ps
