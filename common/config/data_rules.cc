#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/config/job_rules.h"
#include "common/config/rule.h"

namespace lockstep {
namespace {

absl::Status CheckPaths(absl::string_view field,
                        const google::protobuf::RepeatedPtrField<std::string>& paths) {
  if (paths.empty()) return CheckPath(field, "");
  for (const std::string& path : paths) LOCKSTEP_RETURN_IF_ERROR(CheckPath(field, path));
  return absl::OkStatus();
}

absl::Status CheckIdx(const IdxFiles& idx) {
  LOCKSTEP_RETURN_IF_ERROR(CheckPaths("data.idx.train_images", idx.train_images()));
  LOCKSTEP_RETURN_IF_ERROR(CheckPaths("data.idx.train_labels", idx.train_labels()));
  if (idx.train_images_size() != idx.train_labels_size()) {
    return Broken(
        "data.idx.train_labels",
        absl::StrCat("expected ", idx.train_images_size(),
                     " files, one for each of train_images, got ", idx.train_labels_size()),
        "name images and labels in the same order");
  }
  if (idx.test_images().empty() && idx.test_labels().empty()) return absl::OkStatus();
  LOCKSTEP_RETURN_IF_ERROR(CheckPath("data.idx.test_images", idx.test_images()));
  return CheckPath("data.idx.test_labels", idx.test_labels());
}

absl::Status CheckCsv(const CsvFile& csv) {
  LOCKSTEP_RETURN_IF_ERROR(CheckPaths("data.csv.train", csv.train()));
  if (!csv.test().empty()) LOCKSTEP_RETURN_IF_ERROR(CheckPath("data.csv.test", csv.test()));
  const std::string& column = csv.label_column();
  if (column.empty()) {
    return Broken("data.csv.label_column", "it is missing",
                  "name the column in the header, or its number counted from 0");
  }
  const bool number = std::all_of(column.begin(), column.end(), absl::ascii_isdigit);
  if (csv.no_header() && !number) {
    return Broken("data.csv.label_column",
                  absl::StrCat("a file without a header has no column \"", column, "\""),
                  "give the column's number, counted from 0");
  }
  return absl::OkStatus();
}

absl::Status CheckStateInput(const StateInputData& state) {
  const std::string field = absl::StrCat("data.state_inputs: \"", state.name(), "\"");
  if (state.name().empty()) {
    return Broken("data.state_inputs.name", "it is missing", "name a state input of the model");
  }
  if (state.zeros() && (state.train_size() > 0 || !state.test().empty())) {
    return Broken(field, "expected files or zeros, got both", "keep one of the two");
  }
  if (state.zeros()) return absl::OkStatus();
  LOCKSTEP_RETURN_IF_ERROR(CheckPaths(absl::StrCat(field, ": train"), state.train()));
  return state.test().empty() ? absl::OkStatus()
                              : CheckPath(absl::StrCat(field, ": test"), state.test());
}

}  // namespace

absl::Status CheckData(const DataDef& data) {
  const int formats = data.has_idx() + data.has_csv() + data.has_text();
  if (formats != 1) {
    return Broken("data",
                  absl::StrCat("expected one of idx, csv and text, got ",
                               formats == 0 ? "none" : absl::StrCat(formats)),
                  "name the files of one format");
  }
  if (data.has_idx()) LOCKSTEP_RETURN_IF_ERROR(CheckIdx(data.idx()));
  if (data.has_csv()) LOCKSTEP_RETURN_IF_ERROR(CheckCsv(data.csv()));
  if (data.has_text()) LOCKSTEP_RETURN_IF_ERROR(CheckPath("data.text.path", data.text().path()));
  for (const StateInputData& state : data.state_inputs()) {
    LOCKSTEP_RETURN_IF_ERROR(CheckStateInput(state));
  }
  if (data.no_shuffle() && data.shuffle_buffer() != 0) {
    return Broken("data.shuffle_buffer", "no_shuffle is given too", "keep one of the two");
  }
  return data.transform().empty() ? absl::OkStatus() : CheckTransform(data);
}

absl::Status CheckFileShards(const DataDef& data, int64_t num_workers) {
  if (data.auto_shard() != DataDef::FILE) return absl::OkStatus();
  const int64_t files = data.has_text()  ? 1
                        : data.has_csv() ? data.csv().train_size()
                                         : data.idx().train_images_size();
  if (files >= num_workers) return absl::OkStatus();
  return Broken("data.auto_shard",
                absl::StrCat("FILE: expected at least ", num_workers,
                             " training files, one for each worker, got ", files),
                "split the data into more files, use fewer workers, or leave auto_shard out");
}

}  // namespace lockstep
