// Assembles the batches of one replica for any step: source, examples and augmentation put
// together. No thread of its own.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/tensor/tensor_maker.h"
#include "worker/data/example_source.h"
#include "worker/data/example_store.h"
#include "worker/data/shift.h"
#include "worker/data/slice.h"

namespace lockstep::worker {

// Towers [first, first + count) of a replica.
struct TowerRange {
  int64_t first = 0;
  int64_t count = 1;
};

// What Fill writes is a function of (data, options, step) alone. Not thread-safe.
class ReplicaBatches {
 public:
  // The training examples of this replica. Errors as Pipeline::Open.
  static absl::StatusOr<std::shared_ptr<const ExampleStore>> OpenStore(
      const DataDef& data, const ExampleSpec& spec, const PipelineOptions& options);
  // Of the replica's towers those of the range. Errors as Pipeline::Open.
  static absl::StatusOr<ReplicaBatches> Create(std::shared_ptr<const ExampleStore> store,
                                               const DataDef& data, const PipelineOptions& options,
                                               TowerRange towers);

  // One batch per tower of the range, for Fill.
  std::vector<Batch> MakeBatches() const;
  // Overwrites batches made by MakeBatches; allocates nothing. 0 <= step <= last_step(). Returns
  // soon after `cancelled` has become true, with batches that nobody may use.
  void Fill(int64_t step, const std::atomic<bool>& cancelled, std::vector<Batch>* batches);

  // Of one batch: ExampleStore::AlignedBytes.
  size_t aligned_bytes() const { return store_->AlignedBytes(batch_per_tower_); }
  int64_t num_towers() const { return towers_.count; }
  int64_t last_step() const { return source_->last_step(); }
  int64_t num_examples() const { return store_->num_examples(); }

 private:
  ReplicaBatches(std::shared_ptr<const ExampleStore> store, const Slice& slice, TowerRange towers,
                 std::unique_ptr<ExampleSource> source, ShiftSource shifts, bool shifted,
                 TensorMaker make_tensor);

  std::shared_ptr<const ExampleStore> store_;
  int64_t batch_per_tower_;
  TowerRange towers_;
  std::unique_ptr<ExampleSource> source_;
  ShiftSource shifts_;
  bool shifted_;
  TensorMaker make_tensor_;
  std::vector<Element> examples_;  // of all towers, of the step being assembled
};

}  // namespace lockstep::worker
