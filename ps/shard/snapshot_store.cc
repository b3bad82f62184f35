#include "ps/shard/snapshot_store.h"

#include <utility>

#include "ps/shard/variable_entry.h"

namespace lockstep::ps {
namespace {

KeptTensor ValueOf(const VariableEntry& entry) {
  if (entry.table == nullptr) return {.tensor = entry.variable.newest()};
  return {.snapshot = entry.table_copies->TakeSnapshot()};
}

std::vector<KeptTensor> SlotsOf(const VariableEntry& entry) {
  std::vector<KeptTensor> slots;
  for (const auto& copies : entry.slot_copies)
    slots.push_back({.snapshot = copies->TakeSnapshot()});
  return slots;
}

}  // namespace

std::shared_ptr<Snapshot> TakeSnapshot(const EpochVariables& variables, const GrantTerms& terms) {
  if (!terms.keep_values && !terms.keep_slots) return nullptr;
  auto snapshot = std::make_shared<Snapshot>();
  const size_t num_variables = variables.entries.size();
  snapshot->has_slots = terms.keep_slots;
  snapshot->values.resize(num_variables);
  snapshot->averages.resize(num_variables);
  snapshot->slots.resize(num_variables);
  for (size_t i = 0; i < num_variables; ++i) {
    const VariableEntry& entry = *variables.entries[i];
    if (variables.catalog[i].is_replicated) {
      if (terms.keep_slots) snapshot->slots[i].resize(entry.variable.slots().size());
      continue;
    }
    snapshot->values[i] = ValueOf(entry);
    if (terms.keep_slots) snapshot->slots[i] = SlotsOf(entry);
    if (!entry.is_averaged) continue;
    snapshot->averages[i] = terms.keep_slots
                                ? snapshot->slots[i].back()
                                : KeptTensor{.snapshot = entry.slot_copies.back()->TakeSnapshot()};
  }
  return snapshot;
}

}  // namespace lockstep::ps
