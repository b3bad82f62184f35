// Which files a job names for one split of its data.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "common/dataset/csv_reader.h"
#include "common/dataset/example_table.h"

namespace lockstep {

struct SplitFiles {
  bool csv = false;
  std::string features;  // empty: the split is not named
  std::string labels;    // CSV: the same file; IDX: may be empty for test data
  CsvFormat csv_format;
};

// INVALID_ARGUMENT naming the field: not exactly one format, training files or labels missing. Test
// files may be missing altogether.
absl::StatusOr<SplitFiles> FilesOf(const DataDef& data, Split split);

// DATA_LOSS naming both files when images and labels differ in number.
absl::Status CheckSameCount(const SplitFiles& files, int64_t features, int64_t labels);

// DATA_LOSS: the CSV file has no example.
absl::Status NoExamples(const SplitFiles& files);

}  // namespace lockstep
