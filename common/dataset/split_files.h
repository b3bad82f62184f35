// Selects the files that a job names for one split of its data.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/dataset/csv_reader.h"
#include "common/dataset/example_table.h"
#include "common/dataset/records.h"
#include "common/dataset/state_rows.h"

namespace lockstep {

struct DataFile {
  std::string features;
  std::string labels;                  // CSV: the same file; IDX: may be empty for test data
  std::vector<StateFile> states = {};  // in the order of data.state_inputs
};

struct SplitFiles {
  bool csv = false;
  std::vector<DataFile> files;  // in listed order; empty: the split is not named
  CsvFormat csv_format;
};

// The files of idx or csv. INVALID_ARGUMENT naming the field: not exactly one format, training
// files or labels missing, numbers of images, labels and states that differ, fewer training files
// than the shard needs. Test files may be missing altogether. Only training files are sharded.
absl::StatusOr<SplitFiles> FilesOf(const DataDef& data, Split split, const FileShard& shard = {});

// DATA_LOSS naming both files when images and labels differ in number.
absl::Status CheckSameCount(const DataFile& file, int64_t features, int64_t labels);

// DATA_LOSS: the CSV file has no example.
absl::Status NoExamples(const DataFile& file);

// INVALID_ARGUMENT naming both files if a further file has other columns than the first one.
absl::Status CheckSameColumns(const std::string& first_file,
                              const std::vector<std::string>& first_columns,
                              const std::string& file, const std::vector<std::string>& columns);

// The same if it has records of another kind, which one table cannot hold.
absl::Status CheckSameKind(const std::string& first_file, const RecordKind& first_kind,
                           const std::string& file, const RecordKind& kind);

}  // namespace lockstep
