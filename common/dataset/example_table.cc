#include "common/dataset/example_table.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/dataset/csv_reader.h"
#include "common/dataset/idx.h"
#include "common/dataset/memory_room.h"
#include "common/dataset/split_files.h"
#include "common/dataset/text.h"

namespace lockstep {
namespace {

// Adds to what was read of the file, as CheckRoomForData lets it grow.
template <typename T>
absl::Status Append(const std::string& file, absl::Span<const T> values, std::vector<T>* to) {
  const size_t needed = to->size() + values.size();
  if (needed > to->capacity()) {
    const size_t capacity = std::max(needed, 2 * to->capacity());
    LOCKSTEP_RETURN_IF_ERROR(CheckRoomForData(file, static_cast<int64_t>(capacity * sizeof(T))));
    to->reserve(capacity);
  }
  to->insert(to->end(), values.begin(), values.end());
  return absl::OkStatus();
}

template <typename T>
absl::Status AppendBytes(const std::string& file, absl::Span<const T> values,
                         std::vector<std::byte>* to) {
  const auto raw = reinterpret_cast<const std::byte*>(values.data());
  return Append(file, absl::MakeConstSpan(raw, values.size() * sizeof(T)), to);
}

absl::StatusOr<ExampleTable> ReadCsv(const DataFile& source, const CsvFormat& format) {
  LOCKSTEP_ASSIGN_OR_RETURN(auto reader, CsvReader::Open(source.features, format));
  ExampleTable table;
  table.columns = reader.FeatureNames();
  table.features.type = ElementType::kFloat32;
  table.features.shape = Shape({static_cast<int64_t>(reader.num_features())});
  // Whole numbers stay exact up to 2^53, so that a wrong label is reported as it was written.
  table.labels.type = ElementType::kFloat64;
  while (true) {
    LOCKSTEP_ASSIGN_OR_RETURN(const bool found, reader.Next());
    if (!found) break;
    const std::string& file = source.features;
    LOCKSTEP_RETURN_IF_ERROR(
        AppendBytes(file, absl::MakeConstSpan(reader.features()), &table.features.bytes));
    if (reader.has_labels()) {
      const double label[] = {reader.label()};
      LOCKSTEP_RETURN_IF_ERROR(AppendBytes(file, absl::MakeConstSpan(label), &table.labels.bytes));
    }
    const int64_t line[] = {reader.line()};
    LOCKSTEP_RETURN_IF_ERROR(Append(file, absl::MakeConstSpan(line), &table.lines));
  }
  if (table.lines.empty()) return NoExamples(source);
  table.features.count = static_cast<int64_t>(table.lines.size());
  table.labels.count = reader.has_labels() ? table.features.count : 0;
  return table;
}

absl::StatusOr<ExampleTable> ReadIdxPair(const DataFile& source) {
  ExampleTable table;
  LOCKSTEP_ASSIGN_OR_RETURN(table.features, ReadIdx(source.features));
  if (source.labels.empty()) return table;
  LOCKSTEP_ASSIGN_OR_RETURN(table.labels, ReadIdx(source.labels));
  LOCKSTEP_RETURN_IF_ERROR(CheckSameCount(source, table.features.count, table.labels.count));
  return table;
}

// Makes one example of `rows` rows.
absl::Status GroupRows(int64_t rows, Records* records) {
  LOCKSTEP_ASSIGN_OR_RETURN(records->shape, ShapeOfRows(rows, records->shape));
  records->count /= rows;
  return absl::OkStatus();
}

// Reads the states of the examples of one file.
absl::Status AddStates(const std::vector<StateFile>& files, ExampleTable* table) {
  LOCKSTEP_ASSIGN_OR_RETURN(table->states, ReadStateRows(files));
  LOCKSTEP_ASSIGN_OR_RETURN(
      const int64_t rows,
      RowsPerSequence(table->files.front().features, table->size(), files, table->states));
  table->rows_per_sequence = rows;
  if (rows == 1) return absl::OkStatus();
  LOCKSTEP_RETURN_IF_ERROR(GroupRows(rows, &table->features));
  return table->has_labels() ? GroupRows(rows, &table->labels) : absl::OkStatus();
}

absl::StatusOr<ExampleTable> ReadFile(const DataFile& source, const SplitFiles& split) {
  LOCKSTEP_ASSIGN_OR_RETURN(ExampleTable table,
                            split.csv ? ReadCsv(source, split.csv_format) : ReadIdxPair(source));
  table.files = {{source.features, source.labels, 0}};
  LOCKSTEP_RETURN_IF_ERROR(AddStates(source.states, &table));
  return table;
}

absl::Status AppendRecords(const std::string& first_file, const std::string& file,
                           const Records& from, Records* to) {
  LOCKSTEP_RETURN_IF_ERROR(CheckSameKind(first_file, to->kind(), file, from.kind()));
  to->count += from.count;
  return Append(file, absl::MakeConstSpan(from.bytes), &to->bytes);
}

// Puts the examples of `from`, which is of one file, behind those of `to`.
absl::Status AppendTable(const ExampleTable& from, ExampleTable* to) {
  const ExampleTable::File& first = to->files.front();
  ExampleTable::File file = from.files.front();
  file.first = to->size();
  LOCKSTEP_RETURN_IF_ERROR(
      CheckSameColumns(first.features, to->columns, file.features, from.columns));
  LOCKSTEP_RETURN_IF_ERROR(
      AppendRecords(first.features, file.features, from.features, &to->features));
  LOCKSTEP_RETURN_IF_ERROR(AppendRecords(first.labels, file.labels, from.labels, &to->labels));
  for (size_t state = 0; state < to->states.size(); ++state) {
    LOCKSTEP_RETURN_IF_ERROR(
        AppendRecords(first.features, file.features, from.states[state], &to->states[state]));
  }
  LOCKSTEP_RETURN_IF_ERROR(Append(file.features, absl::MakeConstSpan(from.lines), &to->lines));
  to->files.push_back(std::move(file));
  return absl::OkStatus();
}

absl::StatusOr<ExampleTable> ReadTextExamples(const DataDef& data, Split split) {
  LOCKSTEP_ASSIGN_OR_RETURN(ExampleTable table, ReadText(data.text(), split));
  std::vector<StateFile> states;
  if (split == Split::kTest) {
    LOCKSTEP_ASSIGN_OR_RETURN(states, TestStateFiles(data));
  } else {
    LOCKSTEP_ASSIGN_OR_RETURN(auto by_file, TrainStateFiles(data, 1));
    states = std::move(by_file.front());
  }
  LOCKSTEP_RETURN_IF_ERROR(AddStates(states, &table));
  return table;
}

}  // namespace

const ExampleTable::File& ExampleTable::FileOf(int64_t example) const {
  return *std::prev(std::ranges::upper_bound(files, example, {}, &File::first));
}

std::string ExampleTable::Place(int64_t example, int64_t row) const {
  if (!lines.empty()) return absl::StrCat("line ", lines[example * rows_per_sequence + row]);
  const int64_t in_file = example - FileOf(example).first;
  return absl::StrCat("record ", in_file * rows_per_sequence + row);
}

std::string ExampleTable::ColumnName(int64_t column) const {
  return columns.empty() ? absl::StrCat("element ", column)
                         : absl::StrCat("column \"", absl::CHexEscape(columns[column]), "\"");
}

absl::StatusOr<ExampleTable> ReadExamples(const DataDef& data, Split split,
                                          const FileShard& shard) {
  if (data.has_text() && !data.has_idx() && !data.has_csv()) return ReadTextExamples(data, split);
  LOCKSTEP_ASSIGN_OR_RETURN(const SplitFiles files, FilesOf(data, split, shard));
  if (files.files.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("data.", files.csv ? "csv.test" : "idx.test_images",
                     ": not set. Remedy: name the files to evaluate on."));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(ExampleTable table, ReadFile(files.files.front(), files));
  for (size_t i = 1; i < files.files.size(); ++i) {
    LOCKSTEP_ASSIGN_OR_RETURN(const ExampleTable more, ReadFile(files.files[i], files));
    LOCKSTEP_RETURN_IF_ERROR(AppendTable(more, &table));
  }
  return table;
}

}  // namespace lockstep
