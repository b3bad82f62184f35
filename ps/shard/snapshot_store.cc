#include "ps/shard/snapshot_store.h"

#include <utility>

#include "ps/shard/variable_entry.h"

namespace lockstep::ps {
namespace {

std::shared_ptr<const Tensor> ValueOf(const Variable& variable) {
  if (variable.table() == nullptr) return variable.newest();
  return std::make_shared<const Tensor>(variable.newest()->Clone());
}

std::shared_ptr<const Tensor> CopyOfAverage(const VariableEntry& hosted) {
  const MutableTensorView* average = hosted.average();
  if (average == nullptr) return nullptr;
  auto copy = std::make_shared<Tensor>(average->dtype, average->shape);
  Copy(*average, copy->view());
  return copy;
}

}  // namespace

std::shared_ptr<Snapshot> TakeSnapshot(const EpochVariables& variables, const GrantTerms& terms) {
  if (!terms.keep_values && !terms.keep_slots) return nullptr;
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->has_slots = terms.keep_slots;
  for (size_t i = 0; i < variables.entries.size(); ++i) {
    const std::unique_ptr<VariableEntry>& hosted = variables.entries[i];
    const bool is_here = !variables.catalog[i].is_replicated;
    snapshot->values.push_back(is_here ? ValueOf(hosted->variable) : nullptr);
    snapshot->averages.push_back(is_here ? CopyOfAverage(*hosted) : nullptr);
    snapshot->slots.emplace_back();
    if (!terms.keep_slots) continue;
    for (const MutableTensorView& slot : hosted->variable.slots()) {
      Tensor copy(slot.dtype, slot.shape);
      if (is_here) Copy(slot, copy.view());
      snapshot->slots.back().push_back(std::move(copy));
    }
  }
  return snapshot;
}

uint64_t SnapshotBytes(const EpochVariables& variables, const GrantTerms& terms) {
  if (!terms.keep_values && !terms.keep_slots) return 0;
  uint64_t bytes = 0;
  for (const auto& hosted : variables.entries) {
    const Variable& variable = hosted->variable;
    const size_t num_copies = (variable.table() != nullptr) + (hosted->average() != nullptr) +
                              (terms.keep_slots ? variable.slots().size() : 0);
    bytes += num_copies * variable.num_bytes();
  }
  return bytes;
}

bool Satisfies(const Snapshot* snapshot, const GrantTerms& terms) {
  if (snapshot == nullptr) return !terms.keep_values && !terms.keep_slots;
  return snapshot->has_slots || !terms.keep_slots;
}

}  // namespace lockstep::ps
