// A kept version whose values workers bring, of the variables that they keep (strategy replicated).
// Which bytes have come, and which are missing.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/status/statusor.h"
#include "common/base/callback.h"
#include "common/tensor/segmented_reader.h"
#include "common/update/byte_ranges.h"
#include "ps/shard/calls.h"
#include "ps/shard/deferred_callbacks.h"
#include "ps/shard/snapshot_store.h"
#include "ps/shard/variable_entry.h"

namespace lockstep::ps {

// A piece of a message with its variable and slot found.
struct ResolvedStore {
  size_t variable = 0;
  std::optional<size_t> slot;  // of the variable's rule; nullopt: the value
  uint64_t offset = 0;
  uint64_t size = 0;
};

// INVALID_ARGUMENT naming the variable, what was expected and what came: unknown, not replicated, a
// slot that it does not have, a range outside the tensor, a payload of another size.
absl::StatusOr<std::vector<ResolvedStore>> ResolveStore(const EpochVariables& variables,
                                                        const StoreArguments& arguments);

// Guarded by the shard's lock.
class StoredVersion {
 public:
  // `snapshot` is of TakeSnapshot. What is whole is put there; nothing there changes after that.
  StoredVersion(const EpochVariables& variables, std::shared_ptr<Snapshot> snapshot);

  // Takes the bytes of the pieces that were missing. What is not kept is passed over.
  void Take(const std::vector<ResolvedStore>& pieces, const ReceivedTensors& tensors);
  bool is_complete() const { return missing_bytes_ == 0; }

 private:
  struct Item {
    std::shared_ptr<Tensor> tensor;  // null: it is not kept
    ByteRanges there;
    uint64_t missing = 0;
  };
  struct OfVariable {
    std::optional<size_t> average_slot;
    std::vector<Item> items;  // the value, then the slots
  };

  Item MakeItem(const CatalogEntry& entry);
  void Finish(size_t variable, size_t item);

  std::shared_ptr<Snapshot> snapshot_;
  std::vector<OfVariable> variables_;  // without items where it is not replicated
  uint64_t missing_bytes_ = 0;
};

// The kept versions of which something is missing. Guarded by the shard's lock.
class VersionsToStore {
 public:
  // Does nothing where nothing is missing.
  void Await(GlobalStep version, StoredVersion stored);
  bool IsComplete(GlobalStep version) const { return !versions_.contains(version); }
  // nullptr: nothing of the version is missing, or it is not kept.
  StoredVersion* Find(GlobalStep version);
  // `done` gets true when nothing of the version is missing, at once where that is so now.
  void WhenComplete(GlobalStep version, Callback<bool> done, DeferredCallbacks* deferred);
  // Nothing of it is missing, or it is no longer kept.
  void End(GlobalStep version, DeferredCallbacks* deferred);
  void FailWaiting(const absl::Status& status, DeferredCallbacks* deferred);

 private:
  struct Awaited {
    StoredVersion stored;
    std::vector<Callback<bool>> waiting;
  };
  absl::btree_map<GlobalStep, Awaited> versions_;
};

}  // namespace lockstep::ps
