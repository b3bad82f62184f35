#include "common/dataset/measure.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/dataset/csv_reader.h"
#include "common/dataset/idx.h"
#include "common/dataset/split_files.h"

namespace lockstep {
namespace {

struct Measure {
  int64_t count = 0;
  Shape shape;
  std::vector<std::string> columns;  // CSV with a header
};

absl::StatusOr<Measure> MeasureCsv(const SplitFiles& files) {
  LOCKSTEP_ASSIGN_OR_RETURN(auto reader, CsvReader::Open(files.features, files.csv_format));
  Measure measure;
  while (true) {
    LOCKSTEP_ASSIGN_OR_RETURN(const bool found, reader.Next());
    if (!found) break;
    ++measure.count;
  }
  if (measure.count == 0) return NoExamples(files);
  measure.shape = Shape({static_cast<int64_t>(reader.num_features())});
  if (files.csv_format.header) measure.columns = reader.FeatureNames();
  return measure;
}

absl::StatusOr<Measure> MeasureIdx(const SplitFiles& files) {
  LOCKSTEP_ASSIGN_OR_RETURN(const IdxHeader images, ReadIdxHeader(files.features));
  LOCKSTEP_ASSIGN_OR_RETURN(const IdxHeader labels, ReadIdxHeader(files.labels));
  LOCKSTEP_RETURN_IF_ERROR(CheckSameCount(files, images.count, labels.count));
  return Measure{images.count, images.shape, {}};
}

absl::Status CheckAlike(const SplitFiles& train_files, const Measure& train,
                        const SplitFiles& test_files, const Measure& test) {
  if (test.shape == train.shape && test.columns == train.columns) return absl::OkStatus();
  std::string difference = absl::StrCat("examples of shape ", train.shape.ToString(), " as in ",
                                        train_files.features, ", got ", test.shape.ToString());
  if (test.shape == train.shape) {
    const auto [a, b] =
        std::mismatch(train.columns.begin(), train.columns.end(), test.columns.begin());
    difference =
        absl::StrCat("the columns of ", train_files.features, ", got \"", absl::CHexEscape(*b),
                     "\" in the place of \"", absl::CHexEscape(*a), "\"");
  }
  return absl::InvalidArgumentError(
      absl::StrCat(test_files.features, ": expected ", difference,
                   ". Remedy: name training and test files of the same data set."));
}

}  // namespace

absl::StatusOr<DatasetSizes> MeasureDataset(const DataDef& data) {
  LOCKSTEP_ASSIGN_OR_RETURN(const SplitFiles train_files, FilesOf(data, Split::kTrain));
  LOCKSTEP_ASSIGN_OR_RETURN(const SplitFiles test_files, FilesOf(data, Split::kTest));
  const auto measure = train_files.csv ? MeasureCsv : MeasureIdx;
  LOCKSTEP_ASSIGN_OR_RETURN(const Measure train, measure(train_files));
  if (test_files.features.empty()) return DatasetSizes{train.count, 0, train.shape};
  if (test_files.labels.empty()) {
    return absl::InvalidArgumentError(
        "data.idx.test_labels: not set. Remedy: name the labels of data.idx.test_images.");
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const Measure test, measure(test_files));
  LOCKSTEP_RETURN_IF_ERROR(CheckAlike(train_files, train, test_files, test));
  return DatasetSizes{train.count, test.count, train.shape};
}

}  // namespace lockstep
