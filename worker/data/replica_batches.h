// Assembles the batches of one replica for any step: slice, order, examples and augmentation put
// together. No thread of its own.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "worker/data/example_store.h"
#include "worker/data/index_stream.h"
#include "worker/data/shift.h"
#include "worker/data/slice.h"

namespace lockstep::worker {

// What Fill writes is a function of (data, options, step) alone. Not thread-safe.
class ReplicaBatches {
 public:
  // Errors as Pipeline::Open.
  static absl::StatusOr<ReplicaBatches> Open(const DataDef& data, const ExampleSpec& spec,
                                             const PipelineOptions& options);

  // One batch per tower, for Fill.
  std::vector<Batch> MakeBatches() const;
  // Overwrites batches made by MakeBatches; allocates nothing. 0 <= step <= last_step().
  void Fill(int64_t step, std::vector<Batch>* batches);

  int64_t last_step() const { return slice_.last_step(); }
  int64_t num_examples() const { return store_.num_examples(); }

 private:
  ReplicaBatches(ExampleStore store, Slice slice, IndexStream stream, ShiftSource shifts,
                 bool shifted);

  ExampleStore store_;
  Slice slice_;
  IndexStream stream_;
  ShiftSource shifts_;
  bool shifted_;
  std::vector<int64_t> examples_;  // of the batch being assembled
};

}  // namespace lockstep::worker
