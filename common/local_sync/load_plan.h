// LoadPlan divides a block of rows over the towers of a worker and into minibatches, by the rules
// of load_data and optimize of Ray's LocalSyncParallelOptimizer.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace lockstep {

struct LoadRequest {
  int64_t rows = 0;                       // of each input
  std::optional<int64_t> state_rows;      // one per sequence; unset: no state inputs
  int64_t max_per_device_batch_size = 0;  // rows
  int64_t towers = 1;
};

// Rows [begin, begin + count).
struct RowSpan {
  int64_t begin = 0;
  int64_t count = 0;
  friend bool operator==(const RowSpan&, const RowSpan&) = default;
};

// A value. Tower k takes the k-th of equal parts of the rows that are kept. A tuple is a row of
// one tower. A minibatch is per_device_batch_size() tuples of every tower, at the same place.
class LoadPlan {
 public:
  // INVALID_ARGUMENT where no tower, row, or batch size is given, where a sequence is longer than
  // the batch, and where there is less than one sequence per tower.
  static absl::StatusOr<LoadPlan> Create(const LoadRequest& request);

  int64_t towers() const { return towers_; }
  int64_t max_seq_len() const { return max_seq_len_; }  // rows per sequence; 1 without states
  int64_t per_device_batch_size() const { return per_device_batch_size_; }
  int64_t tuples_per_device() const { return tuples_per_device_; }
  // Sequences of a batch. Without states: rows.
  int64_t sequences_per_batch() const { return per_device_batch_size_ / max_seq_len_; }
  int64_t num_batches() const { return tuples_per_device_ / per_device_batch_size_; }
  int64_t rows_kept() const { return towers_ * tuples_per_device_; }
  int64_t sequences_kept() const { return rows_kept() / max_seq_len_; }

  // The rows of the block that tower k is given.
  RowSpan RowsOf(int64_t tower) const { return {tower * tuples_per_device_, tuples_per_device_}; }
  RowSpan StateRowsOf(int64_t tower) const;

  // The rows of a tower's part that the minibatch at tuple `batch_index` takes. It begins with a
  // whole sequence. The caller has checked the index.
  RowSpan RowsAt(int64_t batch_index) const;
  RowSpan StateRowsAt(int64_t batch_index) const;
  // INVALID_ARGUMENT for an index below 0 or past tuples_per_device() - per_device_batch_size().
  absl::Status CheckIndex(int64_t batch_index) const;

 private:
  LoadPlan() = default;
  int64_t towers_ = 1;
  int64_t max_seq_len_ = 1;
  int64_t per_device_batch_size_ = 1;
  int64_t tuples_per_device_ = 1;
  bool has_states_ = false;
};

}  // namespace lockstep
