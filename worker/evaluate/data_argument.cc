#include "worker/evaluate/data_argument.h"

#include <array>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "common/dataset/byte_source.h"
#include "common/dataset/csv_reader.h"

namespace lockstep::worker {
namespace {

// An IDX file starts with two zero bytes; no text does.
absl::StatusOr<bool> IsIdx(const std::string& file) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto source, ByteSource::Open(file));
  std::array<std::byte, 2> start;
  LOCKSTEP_ASSIGN_OR_RETURN(const size_t size, source->Read(absl::MakeSpan(start)));
  return size == start.size() && start[0] == std::byte{0} && start[1] == std::byte{0};
}

// By the number of columns: as many as the model has inputs means that labels are missing.
absl::StatusOr<CsvFile> DescribeCsv(const std::string& file, const TrainedModel& model) {
  CsvFile csv = model.job.data().csv();
  csv.clear_train();
  csv.set_test(file);
  LOCKSTEP_ASSIGN_OR_RETURN(
      const CsvReader reader,
      CsvReader::Open(file, {.label_column = "", .header = !csv.no_header()}));
  const int64_t columns = static_cast<int64_t>(reader.num_features());
  const int64_t inputs = model.graph.input_shape().num_elements();
  if (columns == inputs) {
    csv.clear_label_column();
  } else if (csv.label_column().empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(file, ": ", columns, " columns, the model takes ", inputs,
                     ". Remedy: leave only the model's inputs in the file"));
  }
  return csv;
}

}  // namespace

absl::StatusOr<DataDef> DataFromArgument(absl::string_view argument, const TrainedModel& model) {
  const std::pair<std::string, std::string> files =
      absl::StrSplit(argument, absl::MaxSplits(',', 1));
  DataDef data = model.job.data();
  LOCKSTEP_ASSIGN_OR_RETURN(const bool idx, IsIdx(files.first));
  if (idx) {
    data.clear_csv();
    data.mutable_idx()->Clear();
    data.mutable_idx()->set_test_images(files.first);
    data.mutable_idx()->set_test_labels(files.second);
    return data;
  }
  if (!files.second.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(files.first, ": not an IDX file, so ", files.second,
                     " cannot be its labels. Remedy: a CSV file has its labels in a column"));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(CsvFile csv, DescribeCsv(files.first, model));
  data.clear_idx();
  *data.mutable_csv() = std::move(csv);
  return data;
}

}  // namespace lockstep::worker
