#include "common/dataset/measure.h"

#include <numeric>
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
#include "common/dataset/state_rows.h"
#include "common/dataset/text.h"
#include "common/dataset/transform_of_job.h"

namespace lockstep {
namespace {

struct Measure {
  int64_t count = 0;  // of examples
  Shape shape;
  ElementType type = ElementType::kFloat32;
  std::vector<std::string> columns = {};  // CSV with a header
  int64_t rows_per_sequence = 1;
  RecordKind labels = {};
  std::vector<RecordKind> states = {};
};

// `rows` rows of the file are as its states say.
absl::Status CountExamples(const DataFile& file, const DataDef& data, const ExampleSpec& spec,
                           int64_t rows, Measure* measure) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<Records> states, ReadStateRows(file.states));
  LOCKSTEP_RETURN_IF_ERROR(MakeStates(data, states, spec).status());
  LOCKSTEP_ASSIGN_OR_RETURN(measure->rows_per_sequence,
                            RowsPerSequence(file.features, rows, file.states, states));
  measure->count = rows / measure->rows_per_sequence;
  for (const Records& state : states) measure->states.push_back(state.kind());
  LOCKSTEP_ASSIGN_OR_RETURN(measure->shape,
                            ShapeOfRows(measure->rows_per_sequence, measure->shape));
  return absl::OkStatus();
}

absl::StatusOr<int64_t> CountRows(CsvReader reader) {
  int64_t rows = 0;
  while (true) {
    LOCKSTEP_ASSIGN_OR_RETURN(const bool found, reader.Next());
    if (!found) return rows;
    ++rows;
  }
}

// "column "age"": the feature of a CSV example.
std::string ColumnName(const CsvReader& reader, int64_t feature) {
  return absl::StrCat("column \"", absl::CHexEscape(reader.FeatureNames()[feature]), "\"");
}

// The example that the reader is at.
absl::Status CheckCsvExample(const std::string& file, const CsvReader& reader,
                             const ExampleSpec& spec, int64_t num_classes) {
  const auto place = [&] { return absl::StrCat("line ", reader.line()); };
  if (!TakesLabel(spec, num_classes, reader.label())) {
    return WrongLabel(file, place(), reader.label(), spec, num_classes);
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

absl::StatusOr<Measure> MeasureCsv(const DataFile& file, const CsvFormat& format,
                                   const DataDef& data, const ExampleSpec& spec,
                                   int64_t num_classes, ShapeCheck check) {
  LOCKSTEP_ASSIGN_OR_RETURN(auto reader, CsvReader::Open(file.features, format));
  Measure measure;
  measure.shape = Shape({static_cast<int64_t>(reader.num_features())});
  if (format.header) measure.columns = reader.FeatureNames();
  if (!file.states.empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(auto counter, CsvReader::Open(file.features, format));
    LOCKSTEP_ASSIGN_OR_RETURN(const int64_t rows, CountRows(std::move(counter)));
    LOCKSTEP_RETURN_IF_ERROR(CountExamples(file, data, spec, rows, &measure));
  }
  LOCKSTEP_RETURN_IF_ERROR(check(measure));
  measure.labels.type = ElementType::kFloat64;
  LOCKSTEP_ASSIGN_OR_RETURN(measure.labels.shape, ShapeOfRows(measure.rows_per_sequence, Shape()));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckLabelShape(file.features, /*csv=*/true, measure.labels.shape, spec));
  int64_t rows = 0;
  while (true) {
    LOCKSTEP_ASSIGN_OR_RETURN(const bool found, reader.Next());
    if (!found) break;
    ++rows;
    LOCKSTEP_RETURN_IF_ERROR(CheckCsvExample(file.features, reader, spec, num_classes));
  }
  if (rows == 0) return NoExamples(file);
  measure.count = rows / measure.rows_per_sequence;
  return measure;
}

absl::Status CheckIdxLabels(const DataFile& file, const ExampleSpec& spec, int64_t num_classes) {
  if (!spec.classifier && !spec.predicts_probabilities) return absl::OkStatus();
  LOCKSTEP_ASSIGN_OR_RETURN(const Records labels, ReadIdx(file.labels));
  return VisitElements(labels, [&](auto all) -> absl::Status {
    for (size_t i = 0; i < all.size(); ++i) {
      if (TakesLabel(spec, num_classes, all[i])) continue;
      const size_t record = i / labels.shape.num_elements();
      return WrongLabel(file.labels, absl::StrCat("record ", record), all[i], spec, num_classes);
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<Measure> MeasureIdx(const DataFile& file, const DataDef& data,
                                   const ExampleSpec& spec, int64_t num_classes, ShapeCheck check) {
  LOCKSTEP_ASSIGN_OR_RETURN(const IdxHeader images, ReadIdxHeader(file.features));
  LOCKSTEP_ASSIGN_OR_RETURN(const IdxHeader labels, ReadIdxHeader(file.labels));
  LOCKSTEP_RETURN_IF_ERROR(CheckSameCount(file, images.count, labels.count));
  Measure measure{.count = images.count, .shape = images.shape, .type = images.type};
  LOCKSTEP_RETURN_IF_ERROR(CountExamples(file, data, spec, images.count, &measure));
  LOCKSTEP_RETURN_IF_ERROR(check(measure));
  measure.labels.type = labels.type;
  LOCKSTEP_ASSIGN_OR_RETURN(measure.labels.shape,
                            ShapeOfRows(measure.rows_per_sequence, labels.shape));
  LOCKSTEP_RETURN_IF_ERROR(CheckLabelShape(file.labels, /*csv=*/false, measure.labels.shape, spec));
  LOCKSTEP_RETURN_IF_ERROR(CheckIdxLabels(file, spec, num_classes));
  return measure;
}

// Each sequence of characters has its row of states.
absl::Status CheckTextStates(const DataDef& data, const ExampleSpec& spec,
                             const TextMeasure& sizes) {
  const auto check = [&](std::vector<StateFile> states, int64_t count) -> absl::Status {
    const DataFile file{data.text().path(), data.text().path(), std::move(states)};
    Measure measure{.count = count, .shape = sizes.shape};
    LOCKSTEP_RETURN_IF_ERROR(CountExamples(file, data, spec, count, &measure));
    return CheckExamplesFit(data.text().path(), measure.shape, spec.input_shape);
  };
  LOCKSTEP_ASSIGN_OR_RETURN(auto train, TrainStateFiles(data, 1));
  LOCKSTEP_RETURN_IF_ERROR(check(std::move(train.front()), sizes.train));
  if (sizes.test == 0) return absl::OkStatus();
  LOCKSTEP_ASSIGN_OR_RETURN(auto test, TestStateFiles(data));
  return check(std::move(test), sizes.test);
}

// The sequences fit the model, and it knows all characters.
absl::StatusOr<DatasetSizes> MeasureTextData(const DataDef& data, const ExampleSpec& spec,
                                             int64_t num_classes) {
  const TextFile& text = data.text();
  LOCKSTEP_ASSIGN_OR_RETURN(const TextMeasure measure, MeasureText(text));
  LOCKSTEP_RETURN_IF_ERROR(CheckExamplesFit(text.path(), measure.shape, spec.input_shape));
  LOCKSTEP_RETURN_IF_ERROR(CheckLabelShape(text.path(), /*csv=*/false, measure.shape, spec));
  const int64_t characters = static_cast<int64_t>(measure.characters.size());
  const auto check = [&](int64_t most, absl::string_view what) {
    if (characters <= most) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(text.path(), ": has ", characters, " different characters, expected at most ",
                     most, ", ", what, ". Remedy: give the model ", characters, " of them."));
  };
  if (spec.classifier) LOCKSTEP_RETURN_IF_ERROR(check(num_classes, "the classes of the model"));
  for (const ExampleSpec::RowIndices& indices : spec.row_indices) {
    LOCKSTEP_RETURN_IF_ERROR(check(indices.rows, "the rows of the embedding"));
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckTextStates(data, spec, measure));
  return DatasetSizes{.train = measure.train,
                      .train_files = {measure.train},
                      .test = measure.test,
                      .example_shape = measure.shape,
                      .characters = measure.characters};
}

absl::Status CheckAlike(const std::string& first_file, const Measure& first,
                        const std::string& file, const Measure& other) {
  if (other.shape == first.shape) {
    return CheckSameColumns(first_file, first.columns, file, other.columns);
  }
  return absl::InvalidArgumentError(
      absl::StrCat(file, ": expected examples of shape ", first.shape.ToString(), " as in ",
                   first_file, ", got ", other.shape.ToString(),
                   ". Remedy: name training and test files of the same data set."));
}

// As the reader does before it appends a file to the first one of its worker.
absl::Status CheckReadTogether(const DataFile& first_file, const Measure& first,
                               const DataFile& file, const Measure& other) {
  LOCKSTEP_RETURN_IF_ERROR(CheckSameKind(first_file.features, {first.type, first.shape},
                                         file.features, {other.type, other.shape}));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckSameKind(first_file.labels, first.labels, file.labels, other.labels));
  for (size_t state = 0; state < first.states.size(); ++state) {
    LOCKSTEP_RETURN_IF_ERROR(CheckSameKind(first_file.features, first.states[state], file.features,
                                           other.states[state]));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<DatasetSizes> MeasureDataset(const DataDef& data, const ExampleSpec& spec,
                                            int64_t num_workers) {
  const bool is_text = data.has_text() && !data.has_idx() && !data.has_csv();
  int64_t num_classes = 0;
  if (spec.classifier) {
    LOCKSTEP_ASSIGN_OR_RETURN(num_classes, NumClasses(data.num_classes(), spec));
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckStateInputs(data, spec));
  if (is_text) return MeasureTextData(data, spec, num_classes);
  LOCKSTEP_ASSIGN_OR_RETURN(const SplitFiles train, FilesOf(data, Split::kTrain));
  LOCKSTEP_ASSIGN_OR_RETURN(const SplitFiles test, FilesOf(data, Split::kTest));
  const auto measure = [&](const DataFile& file, ShapeCheck check) {
    return train.csv ? MeasureCsv(file, train.csv_format, data, spec, num_classes, check)
                     : MeasureIdx(file, data, spec, num_classes, check);
  };
  const DataFile& first_file = train.files.front();
  LOCKSTEP_ASSIGN_OR_RETURN(const Measure first, measure(first_file, [&](const Measure& found) {
                              return CheckExamplesFit(first_file.features, found.shape,
                                                      spec.input_shape);
                            }));
  const auto measure_like_first = [&](const DataFile& file) {
    return measure(file, [&](const Measure& found) {
      return CheckAlike(first_file.features, first, file.features, found);
    });
  };
  DatasetSizes sizes{.train_files = {first.count},
                     .example_shape = first.shape,
                     .rows_per_sequence = first.rows_per_sequence,
                     .columns = first.columns};
  const size_t num_shards = FileShardOf(data, {.num_replicas = num_workers}).count;
  std::vector<Measure> measures = {first};
  for (size_t i = 1; i < train.files.size(); ++i) {
    LOCKSTEP_ASSIGN_OR_RETURN(Measure more, measure_like_first(train.files[i]));
    if (i >= num_shards) {
      const size_t first_of_worker = i % num_shards;
      LOCKSTEP_RETURN_IF_ERROR(CheckReadTogether(train.files[first_of_worker],
                                                 measures[first_of_worker], train.files[i], more));
    }
    sizes.train_files.push_back(more.count);
    measures.push_back(std::move(more));
  }
  sizes.train = std::accumulate(sizes.train_files.begin(), sizes.train_files.end(), int64_t{0});
  if (test.files.empty()) return sizes;
  if (test.files.front().labels.empty()) {
    return absl::InvalidArgumentError(
        "data.idx.test_labels: not set. Remedy: name the labels of data.idx.test_images.");
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const Measure found, measure_like_first(test.files.front()));
  sizes.test = found.count;
  return sizes;
}

}  // namespace lockstep
