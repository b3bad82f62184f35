// The endless stream of training examples: any range of its positions as rows of a batch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/tensor/tensor_maker.h"
#include "worker/data/example_store.h"
#include "worker/data/index_stream.h"
#include "worker/data/shift.h"

namespace lockstep::worker {

// What stands at a position is a function of (data, seed, position) alone. Not thread-safe, but
// each copy is a reader of its own: copies share the examples in memory.
class ExampleStream {
 public:
  // Errors as Pipeline::Open.
  static absl::StatusOr<ExampleStream> Open(const DataDef& data, const ExampleSpec& spec,
                                            uint64_t seed);

  int64_t num_examples() const { return store_->num_examples(); }
  const Shape& input_shape() const { return store_->input_shape(); }
  int64_t rows_per_sequence() const { return store_->rows_per_sequence(); }
  int64_t bytes_per_example() const { return store_->bytes_per_example(); }

  // ExampleStore::AlignedBytes.
  size_t AlignedBytes(int64_t rows) const { return store_->AlignedBytes(rows); }

  // Whether so many rows fit into the memory that a step or a load may take: 64 GiB.
  bool HasRoomFor(int64_t rows) const { return rows <= MostRows(); }
  int64_t MostRows() const;

  // A batch with room for so many rows, for Fill. `make` as ExampleStore::MakeBatch has it.
  Batch MakeBatch(int64_t rows, const TensorMaker& make) const {
    return store_->MakeBatch(rows, make);
  }
  // Overwrites the first `rows` rows of the batch with positions [first, first + rows). Allocates
  // nothing once it has seen as many rows.
  void Fill(int64_t first, int64_t rows, Batch* batch);

 private:
  ExampleStream(std::shared_ptr<const ExampleStore> store, IndexStream indices, ShiftSource shifts,
                bool shifted);

  std::shared_ptr<const ExampleStore> store_;
  IndexStream indices_;
  ShiftSource shifts_;
  bool shifted_;
};

}  // namespace lockstep::worker
