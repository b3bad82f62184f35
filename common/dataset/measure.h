// How many examples a job has, and whether they fit its model, found out as cheaply as the files
// allow.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/dataset/example_spec.h"
#include "common/tensor/shape.h"
#include "proto/job.pb.h"

namespace lockstep {

struct DatasetSizes {
  int64_t train = 0;
  std::vector<int64_t> train_files;  // of each training file
  int64_t test = 0;                  // 0: the job names no test files
  Shape example_shape;
  int64_t rows_per_sequence = 1;     // ExampleTable::rows_per_sequence
  std::string characters;            // of a text: TextMeasure::characters
  std::vector<std::string> columns;  // names of the features of CSV files with a header
};

// IDX: reads headers and labels. CSV: reads all, with state inputs twice, and keeps nothing. State
// inputs: reads all. Errors as ReadExamples (what an IDX header does not tell of the examples is
// found when the worker reads the file) and as CheckStateInputs; in addition INVALID_ARGUMENT for
// test data without labels, of another shape, or with other columns than the training data, and
// for examples that do not fit the model: their shape, their labels, their states, in a CSV file
// their row indices. `spec` is the model's. `num_workers`: over whom data.auto_shard: FILE divides
// the training files, of which one worker's have one type.
absl::StatusOr<DatasetSizes> MeasureDataset(const DataDef& data, const ExampleSpec& spec,
                                            int64_t num_workers = 1);

}  // namespace lockstep
