// Examples that fit the model, kept as compact as the file has them and converted one by one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/dataset/example_table.h"
#include "common/tensor/tensor_maker.h"
#include "worker/data/batch.h"
#include "worker/data/pipeline.h"
#include "worker/data/shift.h"

namespace lockstep::worker {

// Immutable; thread-safe.
class ExampleStore {
 public:
  // Reads one split of the job's data, of the training files those of the shard, and checks it
  // against the model. Errors as Pipeline::Open.
  static absl::StatusOr<ExampleStore> Open(const DataDef& data, Split split,
                                           const ExampleSpec& spec, const FileShard& shard = {});

  int64_t num_examples() const { return table_.size(); }
  bool has_labels() const { return labels_.num_elements() > 0; }

  // How many rows of the files are one example: ExampleTable::rows_per_sequence.
  int64_t rows_per_sequence() const { return table_.rows_per_sequence; }

  // In a batch made by MakeBatch, with its number.
  int64_t bytes_per_example() const;

  // What a batch of n examples takes where each of its tensors is aligned, without their numbers.
  size_t AlignedBytes(int64_t n) const;

  // A batch with room for n examples. Without labels in the files its labels are empty. `make`: its
  // tensors.
  Batch MakeBatch(int64_t n, const TensorMaker& make = OnHeap) const;

  // Writes one example to row `row` of a batch made by MakeBatch: (x - offset) * scale.
  void CopyTo(int64_t example, int64_t row, Batch* batch) const;
  // The same moved by `shift`, zeros moving in. The examples must be images (is_image).
  void CopyShiftedTo(int64_t example, Shift shift, int64_t row, Batch* batch) const;

  // Whether an example has rows and columns: the model's input is [h, w] or [h, w, channels].
  bool is_image() const { return input_shape_.rank() == 2 || input_shape_.rank() == 3; }
  const Shape& input_shape() const { return input_shape_; }

 private:
  ExampleStore() = default;
  void CopyLabel(int64_t example, int64_t row, Batch* batch) const;
  void CopyStates(int64_t example, int64_t row, Batch* batch) const;
  float* Row(int64_t row, Batch* batch) const;

  ExampleTable table_;  // its labels are moved into labels_, its states into states_
  Tensor labels_;
  std::vector<Tensor> states_;  // in the model's order; empty where they are zeros
  std::vector<int64_t> units_;  // of each state input
  Shape input_shape_;
  float offset_ = 0;
  float scale_ = 1;
};

}  // namespace lockstep::worker
