#include "common/dataset/split_files.h"

#include "absl/strings/str_cat.h"

namespace lockstep {
namespace {

absl::Status NotSet(absl::string_view field, absl::string_view remedy) {
  return absl::InvalidArgumentError(absl::StrCat(field, ": not set. Remedy: ", remedy, "."));
}

absl::StatusOr<SplitFiles> CsvFiles(const CsvFile& csv, Split split) {
  SplitFiles files;
  files.csv = true;
  files.features = split == Split::kTrain ? csv.train() : csv.test();
  files.labels = files.features;
  files.csv_format.label_column = csv.label_column();
  files.csv_format.header = !csv.no_header();
  if (split == Split::kTest) return files;
  if (files.features.empty()) return NotSet("data.csv.train", "name the file to train on");
  if (csv.label_column().empty()) {
    return NotSet("data.csv.label_column", "name the column that has the labels");
  }
  return files;
}

absl::StatusOr<SplitFiles> IdxSplit(const IdxFiles& idx, Split split) {
  SplitFiles files;
  if (split == Split::kTrain) {
    files.features = idx.train_images();
    files.labels = idx.train_labels();
    if (files.features.empty()) {
      return NotSet("data.idx.train_images", "name the file to train on");
    }
    if (files.labels.empty()) return NotSet("data.idx.train_labels", "name the file of labels");
    return files;
  }
  files.features = idx.test_images();
  files.labels = idx.test_labels();
  if (files.features.empty() && !files.labels.empty()) {
    return NotSet("data.idx.test_images", "name the images of data.idx.test_labels");
  }
  return files;
}

}  // namespace

absl::StatusOr<SplitFiles> FilesOf(const DataDef& data, Split split) {
  if (data.has_idx() == data.has_csv()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "data: expected exactly one of idx and csv, got ", data.has_idx() ? "both" : "neither",
        ". Remedy: name the files in data { idx { ... } } or data { csv { ... } }."));
  }
  return data.has_csv() ? CsvFiles(data.csv(), split) : IdxSplit(data.idx(), split);
}

absl::Status CheckSameCount(const SplitFiles& files, int64_t features, int64_t labels) {
  if (features == labels) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      files.labels, ": expected ", features, " labels, one for each record of ", files.features,
      ", got ", labels, ". Remedy: name images and labels of the same set."));
}

absl::Status NoExamples(const SplitFiles& files) {
  return absl::DataLossError(absl::StrCat(files.features,
                                          ": line 2: expected at least one example, got the end of"
                                          " the file. Remedy: write one example on each line."));
}

}  // namespace lockstep
