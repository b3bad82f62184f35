// The examples of a data set in memory, as the job names them.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/dataset/records.h"
#include "proto/job.pb.h"

namespace lockstep {

struct ExampleTable {
  // A file whose examples start at number `first`.
  struct File {
    std::string features;
    std::string labels;  // the same for CSV
    int64_t first = 0;
  };

  Records features;
  // As many as features; count 0 when the job names no labels (allowed for test data only).
  Records labels;
  std::vector<File> files;  // at least one
  // In the order of data.state_inputs: a row for each example; none where they are zeros.
  std::vector<Records> states;
  // How many rows of the files are one example; more than 1 where states tell that rows are time
  // steps.
  int64_t rows_per_sequence = 1;
  // CSV: the line of each row of the files. Empty for IDX.
  std::vector<int64_t> lines;
  // CSV: the names of the features, their numbers without a header. Empty for IDX.
  std::vector<std::string> columns;

  int64_t size() const { return features.count; }
  bool has_labels() const { return labels.count > 0; }
  // The file that has this example.
  const File& FileOf(int64_t example) const;
  // Where in its file an example is, or a row of it, for messages: "record 17" or "line 18".
  std::string Place(int64_t example, int64_t row = 0) const;
  // Which element of an example of rank 1 it is, for messages: `column "age"`, or "element 3".
  std::string ColumnName(int64_t column) const;
};

enum class Split { kTrain, kTest };

// Of the training files those with the numbers index, index + count, ... The default: all.
struct FileShard {
  int64_t index = 0;
  int64_t count = 1;
};

// Reads the files of one split, one after the other. NOT_FOUND for a missing file; DATA_LOSS (file,
// offset or line, expected, got) for wrong bytes and for images and labels that differ in number;
// INVALID_ARGUMENT where `data` names no file, not exactly one format, fewer files than shards, or
// files whose examples differ in shape, type or columns.
absl::StatusOr<ExampleTable> ReadExamples(const DataDef& data, Split split,
                                          const FileShard& shard = {});

}  // namespace lockstep
