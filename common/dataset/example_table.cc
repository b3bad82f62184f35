#include "common/dataset/example_table.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/dataset/csv_reader.h"
#include "common/dataset/idx.h"
#include "common/dataset/memory_room.h"
#include "common/dataset/split_files.h"

namespace lockstep {
namespace {

// Adds to what was read of the file, as CheckRoomFor lets it grow.
template <typename T>
absl::Status Append(const std::string& file, absl::Span<const T> values, std::vector<T>* to) {
  const size_t needed = to->size() + values.size();
  if (needed > to->capacity()) {
    const size_t capacity = std::max(needed, 2 * to->capacity());
    LOCKSTEP_RETURN_IF_ERROR(CheckRoomFor(file, static_cast<int64_t>(capacity * sizeof(T))));
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

absl::StatusOr<ExampleTable> ReadCsv(const SplitFiles& files) {
  LOCKSTEP_ASSIGN_OR_RETURN(auto reader, CsvReader::Open(files.features, files.csv_format));
  ExampleTable table;
  table.columns = reader.FeatureNames();
  table.features.type = ElementType::kFloat32;
  table.features.shape = Shape({static_cast<int64_t>(reader.num_features())});
  // Whole numbers stay exact up to 2^53, so that a wrong label is reported as it was written.
  table.labels.type = ElementType::kFloat64;
  while (true) {
    LOCKSTEP_ASSIGN_OR_RETURN(const bool found, reader.Next());
    if (!found) break;
    const std::string& file = files.features;
    LOCKSTEP_RETURN_IF_ERROR(
        AppendBytes(file, absl::MakeConstSpan(reader.features()), &table.features.bytes));
    if (reader.has_labels()) {
      const double label[] = {reader.label()};
      LOCKSTEP_RETURN_IF_ERROR(AppendBytes(file, absl::MakeConstSpan(label), &table.labels.bytes));
    }
    const int64_t line[] = {reader.line()};
    LOCKSTEP_RETURN_IF_ERROR(Append(file, absl::MakeConstSpan(line), &table.lines));
  }
  if (table.lines.empty()) return NoExamples(files);
  table.features.count = static_cast<int64_t>(table.lines.size());
  table.labels.count = reader.has_labels() ? table.features.count : 0;
  return table;
}

absl::StatusOr<ExampleTable> ReadIdxPair(const SplitFiles& files) {
  ExampleTable table;
  LOCKSTEP_ASSIGN_OR_RETURN(table.features, ReadIdx(files.features));
  if (files.labels.empty()) return table;
  LOCKSTEP_ASSIGN_OR_RETURN(table.labels, ReadIdx(files.labels));
  LOCKSTEP_RETURN_IF_ERROR(CheckSameCount(files, table.features.count, table.labels.count));
  return table;
}

}  // namespace

std::string ExampleTable::Place(int64_t example) const {
  return lines.empty() ? absl::StrCat("record ", example) : absl::StrCat("line ", lines[example]);
}

std::string ExampleTable::ColumnName(int64_t column) const {
  return columns.empty() ? absl::StrCat("element ", column)
                         : absl::StrCat("column \"", absl::CHexEscape(columns[column]), "\"");
}

absl::StatusOr<ExampleTable> ReadExamples(const DataDef& data, Split split) {
  LOCKSTEP_ASSIGN_OR_RETURN(const SplitFiles files, FilesOf(data, split));
  if (files.features.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("data.", files.csv ? "csv.test" : "idx.test_images",
                     ": not set. Remedy: name the files to evaluate on."));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(ExampleTable table, files.csv ? ReadCsv(files) : ReadIdxPair(files));
  table.features_file = files.features;
  table.labels_file = files.labels;
  return table;
}

}  // namespace lockstep
