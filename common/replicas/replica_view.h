// ReplicaView lists the replicas that share the global batch of a step, in a job whose workers come
// and go. A numbered view holds from its first step until the next view's. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "common/base/ids.h"

namespace lockstep {

// One replica's share of a step's global batch: the `position`-th of `total` equal parts. Without a
// view: none, because the step's view is over.
struct ReplicaShare {
  uint64_t view = 0;
  uint32_t total = 0;
  uint32_t position = 0;  // `total`: none, the replica pushes no gradient in the step

  bool takes_part() const { return position < total; }
  friend bool operator==(const ReplicaShare&, const ReplicaShare&) = default;
};

struct ReplicaView {
  uint64_t number = 0;               // of a job's epoch, from 1, ascending
  GlobalStep first;                  // its first step
  std::vector<WorkerIndex> workers;  // ascending, each once
  uint32_t aggregate = 1;            // gradients that a step needs (replicas_to_aggregate)

  uint32_t total() const { return static_cast<uint32_t>(workers.size()); }
  bool Has(WorkerIndex worker) const;
  ReplicaShare ShareOf(WorkerIndex worker) const;
  // INVALID_ARGUMENT naming the field: number 0, no worker, workers that do not ascend, a negative
  // step, or `aggregate` outside 1 to total().
  absl::Status Check() const;

  friend bool operator==(const ReplicaView&, const ReplicaView&) = default;
};

// The view of each step: those in use and, at most, those that follow. A value; not thread-safe.
class ReplicaViews {
 public:
  bool empty() const { return views_.empty(); }
  // In the order of their steps.
  const std::vector<ReplicaView>& views() const { return views_; }
  // Not empty (CHECK).
  const ReplicaView& newest() const { return views_.back(); }
  // Null for a step before the first view's.
  const ReplicaView* At(GlobalStep step) const;

  // Adds a view that follows all others. INVALID_ARGUMENT: errors of Check, a number or a first
  // step that is not above those of the newest.
  absl::Status Add(ReplicaView view);
  // Removes the views that ended before the step: their steps are not looked up again.
  void ForgetBefore(GlobalStep step);

  friend bool operator==(const ReplicaViews&, const ReplicaViews&) = default;

 private:
  std::vector<ReplicaView> views_;
};

}  // namespace lockstep
