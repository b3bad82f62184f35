// Versions that outlive the steps after them: values for evaluation, with slots and scalars for a
// checkpoint, kept by number until they are released.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "absl/container/btree_map.h"
#include "common/base/limits.h"
#include "common/tensor/tensor.h"
#include "ps/shard/calls.h"
#include "ps/shard/copy_on_write.h"
#include "ps/step/step_machine.h"

namespace lockstep::ps {

struct EpochVariables;

// A tensor of a kept version: one that nobody changes, or a snapshot of one that changes in place.
// At most one of them is there.
struct KeptTensor {
  std::shared_ptr<const Tensor> tensor = nullptr;
  std::shared_ptr<const TensorSnapshot> snapshot = nullptr;

  bool is_there() const { return tensor != nullptr || snapshot != nullptr; }
  DType dtype() const { return tensor != nullptr ? tensor->dtype() : snapshot->dtype(); }
};

// All variables of a shard at one version, in the shard's order. Nothing is there of variables that
// workers keep, until they have stored it (StoredVersion).
struct Snapshot {
  std::vector<KeptTensor> values;
  std::vector<KeptTensor> averages;  // nothing is there for a variable without a moving average
  bool has_slots = false;
  std::vector<std::vector<KeptTensor>> slots;  // per variable; empty without has_slots
  std::vector<std::vector<float>> scalars;     // as EpochState has them
};

// Not thread-safe; a snapshot that was handed out stays whole after its release.
class SnapshotStore {
 public:
  void Keep(GlobalStep version, std::shared_ptr<const Snapshot> snapshot) {
    snapshots_[version] = std::move(snapshot);
  }
  // nullptr when it is not kept.
  std::shared_ptr<const Snapshot> Find(GlobalStep version) const {
    const auto found = snapshots_.find(version);
    return found == snapshots_.end() ? nullptr : found->second;
  }
  // Returns what was kept, to be let go outside a lock; nullptr when it was not.
  [[nodiscard]] std::shared_ptr<const Snapshot> Release(GlobalStep version) {
    auto snapshot = Find(version);
    snapshots_.erase(version);
    return snapshot;
  }

  // The newest that is kept for a checkpoint; nullopt: none is.
  std::optional<GlobalStep> NewestWithSlots() const {
    const auto found = std::find_if(snapshots_.rbegin(), snapshots_.rend(),
                                    [](const auto& kept) { return kept.second->has_slots; });
    return found == snapshots_.rend() ? std::nullopt : std::optional(found->first);
  }

  // Ascending.
  std::vector<GlobalStep> versions() const {
    std::vector<GlobalStep> versions;
    for (const auto& [version, snapshot] : snapshots_) versions.push_back(version);
    return versions;
  }

 private:
  absl::btree_map<GlobalStep, std::shared_ptr<const Snapshot>> snapshots_;
};

// Of the values just published, under the shard's lock, while no variable is closing. Copies
// nothing: slots, averages and tables are copied as they change (copy_on_write.h). The scalars are
// left to the caller. nullptr when nothing is to be kept.
std::shared_ptr<Snapshot> TakeSnapshot(const EpochVariables& variables, const GrantTerms& terms);

// What evaluations found, kept for the chief that comes after the one that made them.
class Evaluations {
 public:
  // Takes the place of an earlier one of the same version. The oldest go beyond
  // limits::kMaxKeptEvaluations.
  void Keep(const EvaluatedVersion& evaluated) {
    const auto at =
        std::ranges::lower_bound(kept_, evaluated.version, {}, &EvaluatedVersion::version);
    if (at != kept_.end() && at->version == evaluated.version) {
      *at = evaluated;
      return;
    }
    kept_.insert(at, evaluated);
    if (kept_.size() > limits::kMaxKeptEvaluations) kept_.erase(kept_.begin());
  }

  // By version, ascending.
  const std::vector<EvaluatedVersion>& kept() const { return kept_; }

 private:
  std::vector<EvaluatedVersion> kept_;
};

}  // namespace lockstep::ps
