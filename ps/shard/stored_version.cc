#include "ps/shard/stored_version.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "ps/shard/state_pieces.h"

namespace lockstep::ps {
namespace {

absl::StatusOr<std::optional<size_t>> FindSlotNamed(const UpdateRule& rule,
                                                    const CatalogEntry& entry,
                                                    const std::string& name) {
  if (name.empty()) return std::nullopt;
  const absl::Span<const SlotSpec> slots = rule.slots();
  for (size_t i = 0; entry.trainable && i < slots.size(); ++i) {
    if (slots[i].name == name) return i;
  }
  return absl::InvalidArgumentError(
      absl::StrCat(Quoted(entry), ": it has no slot \"", name, "\" to be stored"));
}

}  // namespace

absl::StatusOr<std::vector<ResolvedStore>> ResolveStore(const EpochVariables& variables,
                                                        const StoreArguments& arguments) {
  std::vector<ResolvedStore> resolved;
  uint64_t total = 0;
  for (const StoredPiece& piece : arguments.pieces) {
    LOCKSTEP_ASSIGN_OR_RETURN(const size_t variable, variables.catalog.Find(piece.variable));
    const CatalogEntry& entry = variables.catalog[variable];
    if (!entry.is_replicated) {
      return absl::InvalidArgumentError(
          absl::StrCat(Quoted(entry), ": it is not replicated: expected gradients, got values"));
    }
    LOCKSTEP_ASSIGN_OR_RETURN(const std::optional<size_t> slot,
                              FindSlotNamed(*variables.entries[variable]->rule, entry, piece.slot));
    LOCKSTEP_ASSIGN_OR_RETURN(total, AddPiece(entry, piece, total));
    resolved.push_back({variable, slot, piece.offset, piece.size});
  }
  if (total == arguments.tensors.num_bytes()) return resolved;
  return absl::InvalidArgumentError(
      absl::StrCat("values of version ", arguments.version.value(), ": expected ", total,
                   " bytes for its pieces, got ", arguments.tensors.num_bytes()));
}

StoredVersion::StoredVersion(const EpochVariables& variables, std::shared_ptr<Snapshot> snapshot)
    : snapshot_(std::move(snapshot)), variables_(variables.catalog.size()) {
  for (size_t i = 0; i < variables_.size(); ++i) {
    const CatalogEntry& entry = variables.catalog[i];
    if (!entry.is_replicated) continue;
    OfVariable& of = variables_[i];
    const size_t num_slots = variables.entries[i]->variable.slots().size();
    of.items.resize(1 + num_slots);
    of.items[0] = MakeItem(entry);
    if (variables.entries[i]->is_averaged) of.average_slot = num_slots - 1;
    for (size_t slot = 0; slot < num_slots; ++slot) {
      if (snapshot_->has_slots || slot == of.average_slot) of.items[1 + slot] = MakeItem(entry);
    }
    for (size_t item = 0; item < of.items.size(); ++item) {
      if (of.items[item].missing == 0) Finish(i, item);
    }
  }
}

StoredVersion::Item StoredVersion::MakeItem(const CatalogEntry& entry) {
  missing_bytes_ += entry.num_bytes;
  return {.tensor = std::make_shared<Tensor>(entry.dtype, entry.shape),
          .there = {},
          .missing = entry.num_bytes};
}

void StoredVersion::Take(const std::vector<ResolvedStore>& pieces, const ReceivedTensors& tensors) {
  SegmentedReader payload(tensors.segments());
  uint64_t from = 0;
  for (const ResolvedStore& piece : pieces) {
    const size_t number = piece.slot.has_value() ? 1 + *piece.slot : 0;
    Item& item = variables_[piece.variable].items[number];
    for (const ByteRange& range : item.tensor == nullptr
                                      ? ByteRanges::List()
                                      : item.there.Claim(piece.offset, piece.offset + piece.size)) {
      const uint64_t size = range.end - range.begin;
      LOCKSTEP_CHECK(payload.CopyFrom(from + range.begin - piece.offset,
                                      item.tensor->view().bytes().subspan(range.begin, size)));
      item.missing -= size;
      missing_bytes_ -= size;
      if (item.missing == 0) Finish(piece.variable, number);
    }
    from += piece.size;
  }
}

void StoredVersion::Finish(size_t variable, size_t item) {
  const OfVariable& of = variables_[variable];
  const KeptTensor whole{of.items[item].tensor};
  if (item == 0) {
    snapshot_->values[variable] = whole;
    return;
  }
  const size_t slot = item - 1;
  if (snapshot_->has_slots) snapshot_->slots[variable][slot] = whole;
  if (slot == of.average_slot) snapshot_->averages[variable] = whole;
}

void VersionsToStore::Await(GlobalStep version, StoredVersion stored) {
  if (!stored.is_complete()) versions_.emplace(version, Awaited{std::move(stored), {}});
}

StoredVersion* VersionsToStore::Find(GlobalStep version) {
  const auto found = versions_.find(version);
  return found == versions_.end() ? nullptr : &found->second.stored;
}

void VersionsToStore::WhenComplete(GlobalStep version, Callback<bool> done,
                                   DeferredCallbacks* deferred) {
  const auto found = versions_.find(version);
  if (found == versions_.end()) return deferred->Answer<bool>(std::move(done), true);
  found->second.waiting.push_back(std::move(done));
}

void VersionsToStore::End(GlobalStep version, DeferredCallbacks* deferred) {
  const auto found = versions_.find(version);
  if (found == versions_.end()) return;
  for (Callback<bool>& done : found->second.waiting) deferred->Answer<bool>(std::move(done), true);
  versions_.erase(found);
}

void VersionsToStore::FailWaiting(const absl::Status& status, DeferredCallbacks* deferred) {
  for (auto& [version, awaited] : versions_) {
    for (Callback<bool>& done : std::exchange(awaited.waiting, {})) {
      deferred->Answer<bool>(std::move(done), status);
    }
  }
}

}  // namespace lockstep::ps
