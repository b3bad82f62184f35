// How many examples a job has, found out as cheaply as the files allow.
#pragma once

#include "absl/status/statusor.h"
#include "common/tensor/shape.h"
#include "proto/job.pb.h"

namespace lockstep {

struct DatasetSizes {
  int64_t train = 0;
  int64_t test = 0;  // 0: the job names no test files
  Shape example_shape;
};

// IDX: reads the headers. CSV: reads all, keeps nothing. Errors as ReadExamples (what an IDX header
// does not tell is found when the worker reads the file); in addition INVALID_ARGUMENT for test
// data without labels, of another shape, or with other columns than the training data.
absl::StatusOr<DatasetSizes> MeasureDataset(const DataDef& data);

}  // namespace lockstep
