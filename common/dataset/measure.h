// Counts the examples of a job and checks that they fit its model, at the lowest cost that the
// files allow.
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
// inputs: reads all. `spec` is the model's. data.auto_shard: FILE divides the training files over
// `num_workers`; the files of one worker must have one type.
//
// Errors as ReadExamples and as CheckStateInputs. Errors in examples that an IDX header does not
// show are found when the worker reads the file. INVALID_ARGUMENT also for test data without
// labels, of another shape, or with other columns than the training data. The same for examples
// that do not fit the model: their shape, labels or states, in a CSV file their row indices.
absl::StatusOr<DatasetSizes> MeasureDataset(const DataDef& data, const ExampleSpec& spec,
                                            int64_t num_workers = 1);

}  // namespace lockstep
