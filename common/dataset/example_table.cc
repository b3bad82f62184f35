#include "common/dataset/example_table.h"

#include <cstring>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/dataset/csv_reader.h"
#include "common/dataset/idx.h"
#include "common/dataset/split_files.h"

namespace lockstep {
namespace {

template <typename T>
void Append(absl::Span<const T> values, std::vector<std::byte>* bytes) {
  const auto raw = reinterpret_cast<const std::byte*>(values.data());
  bytes->insert(bytes->end(), raw, raw + values.size() * sizeof(T));
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
    Append(absl::MakeConstSpan(reader.features()), &table.features.bytes);
    if (reader.has_labels()) {
      const double label[] = {reader.label()};
      Append(absl::MakeConstSpan(label), &table.labels.bytes);
    }
    table.lines.push_back(reader.line());
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
