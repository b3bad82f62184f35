// A variable with what belongs to it, as the chief wants it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/optimizer/update_rule.h"
#include "common/update/dense_update.h"
#include "common/update/variable.h"
#include "ps/shard/catalog.h"
#include "ps/shard/epoch_config.h"
#include "ps/shard/shared_table.h"
#include "ps/shard/variable_initializer.h"

namespace lockstep::ps {

// What of a variable's step is made while its gradients come in. Guarded by the shard's lock,
// except that who has claimed a range makes it without, and that once its gradients are taken the
// update belongs to who closes it.
struct EarlyClose {
  std::vector<uint32_t> arrived;  // replicas whose range is whole; empty: it closes as a whole
  std::optional<DenseUpdate> update;
};

struct VariableEntry {
  Variable variable;
  const UpdateRule* rule;  // not its own
  bool is_averaged = false;
  std::shared_ptr<SharedTable> table;  // the variable's, if it is one
  EarlyClose early = {};
  uint64_t extra_bytes = 0;  // as counted in EpochState::extra_bytes

  // nullptr without one.
  const MutableTensorView* average() const {
    return is_averaged ? &variable.slots().back() : nullptr;
  }
};

// How a variable is updated.
struct RuleOfVariable {
  const UpdateRule* rule;
  bool is_averaged = false;
};

// How many shared buffers its values take, where workers of this host read them.
size_t NumSharedBuffers(const CatalogEntry& entry, const UpdateRule& rule);

// In these shared buffers, or on the heap. `missing` gets the slots that a checkpoint lacks. The
// errors of CheckpointReader.
absl::StatusOr<std::unique_ptr<VariableEntry>> MakeHostedVariable(
    const CatalogEntry& entry, const VariableInitializer& first, const RuleOfVariable& of,
    const EpochConfig& config, std::vector<SharedBuffer> shared, std::vector<std::string>* missing);

}  // namespace lockstep::ps
