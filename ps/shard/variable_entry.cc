#include "ps/shard/variable_entry.h"

#include <algorithm>
#include <utility>

#include "common/base/status_macros.h"
#include "ps/shard/memory_need.h"

namespace lockstep::ps {
namespace {

// Its values change in place, row by row.
bool IsTable(const CatalogEntry& entry, const UpdateRule& rule) {
  return entry.is_sparse && entry.TakesGradients() && rule.TouchesOnlyRows();
}

absl::StatusOr<std::shared_ptr<Table>> MakeTable(const CatalogEntry& entry,
                                                 const VariableInitializer& first,
                                                 Table::Keeps keeps, GlobalStep version,
                                                 std::vector<SharedBuffer> shared) {
  ValueBuffer buffer;
  if (shared.empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(buffer.tensor, MakeTensor(entry, "values"));
  } else {
    buffer = BufferIn(std::move(shared.front()), entry.dtype, entry.shape);
  }
  LOCKSTEP_RETURN_IF_ERROR(first.Fill(entry, buffer.tensor.view()));
  return std::make_shared<Table>(std::move(buffer.tensor), version, keeps, buffer.seq_lock);
}

absl::StatusOr<std::vector<Tensor>> MakeSlots(const CatalogEntry& entry,
                                              const VariableInitializer& first,
                                              const UpdateRule& rule, const Tensor& value,
                                              std::vector<std::string>* missing) {
  std::vector<Tensor> slots;
  if (!entry.trainable || entry.is_frozen) return slots;
  for (const SlotSpec& spec : rule.slots()) {
    LOCKSTEP_ASSIGN_OR_RETURN(Tensor slot, first.Slot(entry, spec, value, missing));
    slots.push_back(std::move(slot));
  }
  return slots;
}

// What is copied at a time before it is written. Of a table, a row: a step may change few rows all
// over it. Small rows share a page, so that there are fewer to count than bytes.
size_t PageBytes(const CatalogEntry& entry, bool is_table) {
  constexpr size_t kSmallestPage = 256;
  return is_table ? std::clamp<size_t>(entry.row_bytes, kSmallestPage, DenseUpdate::kRangeBytes)
                  : DenseUpdate::kRangeBytes;
}

void ObserveWrites(size_t page_bytes, VariableEntry* entry) {
  std::vector<WriteObserver*> observers;
  for (size_t i = 0; i < entry->variable.slots().size(); ++i) {
    entry->slot_copies.push_back(
        std::make_unique<CopyOnWrite>(entry->variable.slot(i), page_bytes));
    observers.push_back(entry->slot_copies.back().get());
  }
  if (entry->table != nullptr) {
    entry->table_copies = std::make_unique<CopyOnWrite>(entry->table->table->value(), page_bytes);
  }
  entry->variable.SetObservers(std::move(observers), entry->table_copies.get());
}

}  // namespace

size_t NumSharedBuffers(const CatalogEntry& entry, const UpdateRule& rule) {
  if (!entry.TakesGradients() || IsTable(entry, rule)) return 1;
  return entry.is_sparse ? 0 : BufferPool::kMaxShared;
}

absl::StatusOr<std::unique_ptr<VariableEntry>> MakeVariableEntry(
    const CatalogEntry& entry, const VariableInitializer& first, const RuleOfVariable& of,
    const EpochConfig& config, std::vector<SharedBuffer> shared,
    std::vector<std::string>* missing) {
  const UpdateRule& rule = *of.rule;
  const GlobalStep version = config.start_step();
  std::unique_ptr<VariableEntry> hosted;
  if (IsTable(entry, rule)) {
    const Table::Keeps keeps = config.is_asynchronous() ? Table::kNewest : Table::kPrevious;
    LOCKSTEP_ASSIGN_OR_RETURN(auto table,
                              MakeTable(entry, first, keeps, version, std::move(shared)));
    LOCKSTEP_ASSIGN_OR_RETURN(auto slots, MakeSlots(entry, first, rule, *table->value(), missing));
    hosted.reset(new VariableEntry{Variable(entry.name, table, version, std::move(slots)), of.rule,
                                   of.is_averaged, of.optimizer,
                                   std::make_shared<SharedTable>(table)});
  } else {
    LOCKSTEP_ASSIGN_OR_RETURN(Tensor value, MakeTensor(entry, "values"));
    LOCKSTEP_RETURN_IF_ERROR(first.Fill(entry, value.view()));
    LOCKSTEP_ASSIGN_OR_RETURN(auto slots, MakeSlots(entry, first, rule, value, missing));
    hosted.reset(new VariableEntry{Variable(entry.name, entry.trainable, std::move(value), version,
                                            std::move(slots), std::move(shared)),
                                   of.rule, of.is_averaged, of.optimizer});
  }
  ObserveWrites(PageBytes(entry, hosted->table != nullptr), hosted.get());
  return hosted;
}

}  // namespace lockstep::ps
