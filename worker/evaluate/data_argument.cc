#include "worker/evaluate/data_argument.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/remedy.h"
#include "common/base/status_macros.h"
#include "common/dataset/byte_source.h"
#include "common/dataset/csv_reader.h"
#include "common/dataset/fit.h"
#include "common/dataset/idx.h"
#include "common/dataset/split_files.h"
#include "common/fs/absolute_path.h"

namespace lockstep::worker {
namespace {

bool IsFile(absl::string_view path) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(std::string(path), error);
  return std::filesystem::exists(status) && !std::filesystem::is_directory(status);
}

// Where the first of several names ends, each behind a comma: a name may have commas itself. The
// shortest name of a file counts; where none is one, the first comma does.
size_t EndOfName(absl::string_view names) {
  size_t end = std::min(names.find(','), names.size());
  const size_t first = end;
  for (; !IsFile(names.substr(0, end)); end = std::min(names.find(',', end + 1), names.size())) {
    if (end == names.size()) return first;
  }
  return end;
}

std::vector<std::string> SplitNames(absl::string_view names) {
  std::vector<std::string> files;
  for (bool is_last = names.empty(); !is_last;) {
    const size_t end = EndOfName(names);
    files.emplace_back(names.substr(0, end));
    is_last = end == names.size();
    if (!is_last) names.remove_prefix(end + 1);
  }
  return files;
}

// FILE[,LABELS]
std::pair<std::string, std::string> SplitLabels(absl::string_view argument) {
  const size_t end = IsFile(argument) ? argument.size() : EndOfName(argument);
  const absl::string_view labels = argument.substr(std::min(end + 1, argument.size()));
  return {std::string(argument.substr(0, end)), std::string(labels)};
}

// An IDX file starts with two zero bytes; no text does.
absl::StatusOr<bool> IsIdx(const std::string& file) {
  const auto opened = ByteSource::Open(file);
  if (!opened.ok()) return SetRemedy(opened.status(), "give --data a file that this user may read");
  const auto& source = *opened;
  std::array<std::byte, 2> start;
  const auto read = source->Read(absl::MakeSpan(start));
  if (!read.ok()) return SetRemedy(read.status(), "give --data a file that this user may read");
  const size_t size = *read;
  return size == start.size() && start[0] == std::byte{0} && start[1] == std::byte{0};
}

// A model that is trained takes what it takes: the file has to change.
absl::Status WrongColumns(const std::string& file, int64_t columns, int64_t inputs,
                          const std::string& label_column, bool has_label) {
  const std::string labelled =
      label_column.empty()
          ? ""
          : absl::StrCat(", or ", inputs + 1, " columns with the label in column \"",
                         absl::CHexEscape(label_column), "\"");
  return absl::InvalidArgumentError(
      absl::StrCat(file, ": ", columns, columns == 1 ? " column" : " columns",
                   has_label ? ", one of them the label" : "", ", the model takes ", inputs,
                   inputs == 1 ? " number" : " numbers", labelled,
                   ". Remedy: give the file the columns that the model was trained on"));
}

// The reader's remedies for the columns are fields of a job.
absl::StatusOr<CsvReader> OpenCsv(const std::string& file, bool header) {
  absl::StatusOr<CsvReader> reader = CsvReader::Open(file, {.label_column = "", .header = header});
  if (!absl::IsInvalidArgument(reader.status())) return reader;
  return SetRemedy(reader.status(),
                   absl::StrCat("separate the columns by commas",
                                header ? ", below a line with their names" : "",
                                ", as in the files that the model was trained on"));
}

// Whether the columns beside the label are those of the training, where a header names both. A
// checkpoint of a version before has no names.
absl::Status CheckNames(const std::string& file, const CsvFile& trained,
                        const std::string& label_column) {
  if (trained.columns().empty()) return absl::OkStatus();
  LOCKSTEP_ASSIGN_OR_RETURN(const CsvReader reader,
                            CsvReader::Open(file, {.label_column = label_column}));
  return SetRemedy(CheckSameColumns("the files that the model was trained on",
                                    {trained.columns().begin(), trained.columns().end()}, file,
                                    reader.FeatureNames()),
                   "give the file the columns that the model was trained on, in their order");
}

// By the number of columns: as many as the model has inputs means that labels are missing.
absl::StatusOr<CsvFile> DescribeCsv(const std::string& file, const TrainedModel& model) {
  CsvFile csv = model.job.data().csv();
  csv.clear_train();
  csv.set_test(file);
  LOCKSTEP_ASSIGN_OR_RETURN(const CsvReader reader, OpenCsv(file, !csv.no_header()));
  const int64_t columns = static_cast<int64_t>(reader.num_features());
  const std::string label = csv.label_column();
  const bool has_label =
      !csv.no_header() && !label.empty() && absl::c_linear_search(reader.FeatureNames(), label);
  const Shape& input = model.graph.input_shape();
  int64_t inputs = input.num_elements();
  // Rows may be steps of sequences; reading them tells how long these are.
  if (model.graph.num_state_inputs() > 0 && input.rank() > 1) {
    const int64_t per_step = inputs / input.dim(0);
    const bool has_label_column = has_label || (csv.no_header() && columns == per_step + 1);
    if (columns < inputs || columns == per_step + (has_label_column ? 1 : 0)) inputs = per_step;
  }
  int64_t number = 0;
  const bool lacks_label = !has_label && !absl::SimpleAtoi(label, &number);
  if (columns == inputs && !has_label) {
    csv.clear_label_column();
  } else if (columns != inputs + 1 || label.empty() || lacks_label) {
    return WrongColumns(file, columns, inputs, label, has_label);
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckNames(file, model.job.data().csv(), csv.label_column()));
  return csv;
}

absl::Status CheckShape(const std::string& file, const TrainedModel& model) {
  LOCKSTEP_ASSIGN_OR_RETURN(const IdxHeader header, ReadIdxHeader(file));
  // Rows may be steps of sequences; reading them tells how long these are.
  if (model.graph.num_state_inputs() > 0) return absl::OkStatus();
  return SetRemedy(CheckExamplesFit(file, header.shape, model.graph.input_shape()),
                   "give --data examples like those that the model was trained on");
}

}  // namespace

absl::StatusOr<DataDef> DataFromArgument(absl::string_view argument, const TrainedModel& model) {
  const std::pair<std::string, std::string> files = SplitLabels(argument);
  DataDef data = model.job.data();
  if (data.has_text()) {
    std::string path = AbsolutePath(std::string(argument));
    // A checkpoint of a version before has no characters: only its own text tells their numbers.
    if (data.text().characters().empty() && path != AbsolutePath(data.text().path())) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--data: expected the text that the model was trained on, ", data.text().path(), ", got ",
          argument, ". Remedy: give that one, whose end the model has not seen"));
    }
    data.mutable_text()->set_path(std::move(path));
    return data;
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const bool idx, IsIdx(files.first));
  if (idx) {
    LOCKSTEP_RETURN_IF_ERROR(CheckShape(files.first, model));
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

absl::Status SetStateFiles(absl::string_view argument, const TrainedModel& model, DataDef* data) {
  const auto& states = model.example_spec().state_inputs;
  const std::vector<std::string> files = SplitNames(argument);
  const bool all_zeros = absl::c_all_of(data->state_inputs(),
                                        [](const StateInputData& state) { return state.zeros(); });
  if (files.empty() && all_zeros) return absl::OkStatus();
  if (files.size() != states.size()) {
    const auto quote = [](std::string* out, const ExampleSpec::StateRow& state) {
      absl::StrAppend(out, "\"", state.name, "\"");
    };
    return absl::InvalidArgumentError(absl::StrCat(
        "--states: expected ", states.size(), " files, of rows for the model's state inputs",
        states.empty() ? "" : ": ", absl::StrJoin(states, ", ", quote), ", got ", files.size(),
        ". Remedy: --states=FILE[,FILE] names them in this order"));
  }
  for (StateInputData& state : *data->mutable_state_inputs()) {
    const auto of_model =
        absl::c_find_if(states, [&](const auto& row) { return row.name == state.name(); });
    if (of_model == states.end()) continue;
    state.set_zeros(false);
    state.clear_train();
    state.set_test(files[of_model - states.begin()]);
  }
  return absl::OkStatus();
}

}  // namespace lockstep::worker
