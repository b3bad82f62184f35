// One evaluation: the test set cut into ranges that are leased to workers, moved when a worker dies
// or is slow, and merged once each. Pure: time is an argument. Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/base/ids.h"

namespace lockstep::chief {

struct Lease {
  uint64_t id = 0;
  GlobalStep version;
  int64_t begin = 0;  // of the test set, end not included
  int64_t end = 0;
  friend bool operator==(const Lease&, const Lease&) = default;
};

struct LeaseResult {
  uint64_t lease = 0;
  int64_t examples = 0;
  int64_t correct = 0;
  double loss_sum = 0;
};

struct EvaluationTotals {
  GlobalStep version;
  int64_t examples = 0;
  double accuracy = 0;
  double loss = 0;  // mean over the labels
};

class Evaluation {
 public:
  // `examples` is positive; each has `labels_per_example` labels to predict. Ranges have `range`
  // examples, the last one the rest. Lease ids count from `first_lease`. A range that is out for
  // longer than `patience` is also given to a worker that has nothing else to do; its next move
  // takes twice as long.
  Evaluation(GlobalStep version, int64_t examples, int64_t range, uint64_t first_lease,
             absl::Duration patience, int64_t labels_per_example = 1);

  // Hands ranges to the live workers that have none and takes them from those that are gone.
  void Assign(absl::Span<const WorkerIndex> live, absl::Duration now);
  // Hands one to this worker, which is live, if it has none.
  void AssignTo(WorkerIndex worker, absl::Duration now);

  // What this worker is to do: one lease or none.
  std::optional<Lease> LeaseOf(WorkerIndex worker) const;

  // A result of any lease ever given out to `worker`, which reports it, counts, the first one per
  // range; the others change nothing. INVALID_ARGUMENT for counts that do not fit the lease's
  // range. A lease of another evaluation or of another worker changes nothing.
  absl::Status Report(WorkerIndex worker, const LeaseResult& result);

  bool done() const { return open_ == 0; }
  // Once done; the same bits in whichever order the results came.
  EvaluationTotals Totals() const;
  int64_t ranges() const { return static_cast<int64_t>(ranges_.size()); }
  int64_t ranges_done() const { return ranges() - open_; }
  // The id after the last one given out.
  uint64_t next_lease() const { return next_lease_; }
  GlobalStep version() const { return version_; }

 private:
  struct Range {
    int64_t begin = 0;
    int64_t end = 0;
    std::optional<LeaseResult> result;
    // Of the lease in force, if any.
    std::optional<WorkerIndex> holder;
    uint64_t lease = 0;
    absl::Duration since;
    absl::Duration patience;
  };

  struct GivenLease {
    size_t range = 0;
    WorkerIndex worker;
  };

  void Give(size_t range, WorkerIndex worker, absl::Duration now);
  std::optional<size_t> Pick(absl::Duration now);

  const GlobalStep version_;
  const int64_t labels_per_example_;
  const uint64_t first_lease_;
  std::vector<Range> ranges_;
  absl::btree_set<size_t> free_;                    // ranges without result and holder
  absl::flat_hash_map<WorkerIndex, size_t> holds_;  // by the holder of a range
  int64_t open_ = 0;
  uint64_t next_lease_;
  std::vector<GivenLease> given_;  // by id - first_lease_
};

// The number of examples per lease: a few leases per worker, whole batches, not so small that the
// calls cost more than the work.
int64_t RangeSize(int64_t examples, int64_t workers, int64_t batch);

}  // namespace lockstep::chief
