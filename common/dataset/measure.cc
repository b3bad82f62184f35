#include "common/dataset/measure.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/dataset/csv_reader.h"
#include "common/dataset/example_rules.h"
#include "common/dataset/fit.h"
#include "common/dataset/idx.h"
#include "common/dataset/records.h"
#include "common/dataset/split_files.h"

namespace lockstep {
namespace {

struct Measure {
  int64_t count = 0;
  Shape shape;
  std::vector<std::string> columns;  // CSV with a header
};

// "column "age"": the feature of a CSV example.
std::string ColumnName(const CsvReader& reader, int64_t feature) {
  return absl::StrCat("column \"", absl::CHexEscape(reader.FeatureNames()[feature]), "\"");
}

// The example that the reader is at.
absl::Status CheckCsvExample(const std::string& file, const CsvReader& reader,
                             const ExampleSpec& spec, int64_t num_classes) {
  const auto place = [&] { return absl::StrCat("line ", reader.line()); };
  if (spec.classifier && !IsClass(reader.label(), num_classes)) {
    return NotAClass(file, place(), reader.label(), num_classes);
  }
  for (const ExampleSpec::RowIndices& indices : spec.row_indices) {
    for (int64_t c = indices.first; c < indices.first + indices.count; ++c) {
      const float value = reader.features()[c];
      if (IsRowIndex(value, indices.rows)) continue;
      return NotARowIndex(file, place(), ColumnName(reader, c), value, indices.rows);
    }
  }
  return absl::OkStatus();
}

// Whether a file of this shape and columns can be what the job says.
using ShapeCheck = absl::FunctionRef<absl::Status(const Measure&)>;

absl::StatusOr<Measure> MeasureCsv(const SplitFiles& files, const ExampleSpec& spec,
                                   int64_t num_classes, ShapeCheck check) {
  LOCKSTEP_ASSIGN_OR_RETURN(auto reader, CsvReader::Open(files.features, files.csv_format));
  Measure measure;
  measure.shape = Shape({static_cast<int64_t>(reader.num_features())});
  if (files.csv_format.header) measure.columns = reader.FeatureNames();
  LOCKSTEP_RETURN_IF_ERROR(check(measure));
  LOCKSTEP_RETURN_IF_ERROR(CheckLabelShape(files.features, /*csv=*/true, Shape(), spec));
  while (true) {
    LOCKSTEP_ASSIGN_OR_RETURN(const bool found, reader.Next());
    if (!found) break;
    ++measure.count;
    LOCKSTEP_RETURN_IF_ERROR(CheckCsvExample(files.features, reader, spec, num_classes));
  }
  if (measure.count == 0) return NoExamples(files);
  return measure;
}

absl::Status CheckIdxLabels(const SplitFiles& files, int64_t num_classes) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Records labels, ReadIdx(files.labels));
  return VisitElements(labels, [&](auto all) -> absl::Status {
    for (size_t i = 0; i < all.size(); ++i) {
      if (IsClass(all[i], num_classes)) continue;
      return NotAClass(files.labels, absl::StrCat("record ", i), all[i], num_classes);
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<Measure> MeasureIdx(const SplitFiles& files, const ExampleSpec& spec,
                                   int64_t num_classes, ShapeCheck check) {
  LOCKSTEP_ASSIGN_OR_RETURN(const IdxHeader images, ReadIdxHeader(files.features));
  LOCKSTEP_ASSIGN_OR_RETURN(const IdxHeader labels, ReadIdxHeader(files.labels));
  LOCKSTEP_RETURN_IF_ERROR(CheckSameCount(files, images.count, labels.count));
  const Measure measure{images.count, images.shape, {}};
  LOCKSTEP_RETURN_IF_ERROR(check(measure));
  LOCKSTEP_RETURN_IF_ERROR(CheckLabelShape(files.labels, /*csv=*/false, labels.shape, spec));
  if (spec.classifier) LOCKSTEP_RETURN_IF_ERROR(CheckIdxLabels(files, num_classes));
  return measure;
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

absl::StatusOr<DatasetSizes> MeasureDataset(const DataDef& data, const ExampleSpec& spec) {
  LOCKSTEP_ASSIGN_OR_RETURN(const SplitFiles train_files, FilesOf(data, Split::kTrain));
  LOCKSTEP_ASSIGN_OR_RETURN(const SplitFiles test_files, FilesOf(data, Split::kTest));
  int64_t num_classes = 0;
  if (spec.classifier) {
    LOCKSTEP_ASSIGN_OR_RETURN(num_classes, NumClasses(data.num_classes(), spec));
  }
  const auto measure = train_files.csv ? MeasureCsv : MeasureIdx;
  LOCKSTEP_ASSIGN_OR_RETURN(
      const Measure train, measure(train_files, spec, num_classes, [&](const Measure& found) {
        return CheckExamplesFit(train_files.features, found.shape, spec.input_shape);
      }));
  if (test_files.features.empty()) return DatasetSizes{train.count, 0, train.shape};
  if (test_files.labels.empty()) {
    return absl::InvalidArgumentError(
        "data.idx.test_labels: not set. Remedy: name the labels of data.idx.test_images.");
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const Measure test,
                            measure(test_files, spec, num_classes, [&](const Measure& found) {
                              return CheckAlike(train_files, train, test_files, found);
                            }));
  return DatasetSizes{train.count, test.count, train.shape};
}

}  // namespace lockstep
