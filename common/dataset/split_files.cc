#include "common/dataset/split_files.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace lockstep {
namespace {

absl::Status NotSet(absl::string_view field, absl::string_view remedy) {
  return absl::InvalidArgumentError(absl::StrCat(field, ": not set. Remedy: ", remedy, "."));
}

absl::StatusOr<SplitFiles> CsvFiles(const CsvFile& csv, Split split) {
  SplitFiles split_files;
  split_files.csv = true;
  split_files.csv_format.label_column = csv.label_column();
  split_files.csv_format.header = !csv.no_header();
  if (split == Split::kTest) {
    if (!csv.test().empty()) split_files.files = {{csv.test(), csv.test()}};
    return split_files;
  }
  for (const std::string& file : csv.train()) {
    if (!file.empty()) split_files.files.push_back({file, file});
  }
  if (split_files.files.empty()) return NotSet("data.csv.train", "name the file to train on");
  if (csv.label_column().empty()) {
    return NotSet("data.csv.label_column", "name the column that has the labels");
  }
  return split_files;
}

absl::StatusOr<SplitFiles> IdxTrain(const IdxFiles& idx) {
  SplitFiles split_files;
  if (idx.train_images().empty()) {
    return NotSet("data.idx.train_images", "name the file to train on");
  }
  if (idx.train_labels().empty()) {
    return NotSet("data.idx.train_labels", "name the file of labels");
  }
  if (idx.train_images_size() != idx.train_labels_size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("data.idx.train_labels: expected ", idx.train_images_size(),
                     " files, one for each of data.idx.train_images, got ", idx.train_labels_size(),
                     ". Remedy: name images and labels in the same order."));
  }
  for (int i = 0; i < idx.train_images_size(); ++i) {
    split_files.files.push_back({idx.train_images(i), idx.train_labels(i)});
  }
  return split_files;
}

absl::StatusOr<SplitFiles> IdxTest(const IdxFiles& idx) {
  SplitFiles split_files;
  if (!idx.test_images().empty()) {
    split_files.files = {{idx.test_images(), idx.test_labels()}};
  } else if (!idx.test_labels().empty()) {
    return NotSet("data.idx.test_images", "name the images of data.idx.test_labels");
  }
  return split_files;
}

// Keeps the files of the shard.
absl::Status KeepShard(const FileShard& shard, std::vector<DataFile>* files) {
  const int64_t size = static_cast<int64_t>(files->size());
  if (size < shard.count) {
    return absl::InvalidArgumentError(absl::StrCat(
        "data.auto_shard: FILE: expected at least ", shard.count,
        " training files, one for each worker, got ", size,
        ". Remedy: split the data into more files, use fewer workers, or leave auto_shard out."));
  }
  std::vector<DataFile> kept;
  for (int64_t i = shard.index; i < size; i += shard.count) kept.push_back((*files)[i]);
  *files = std::move(kept);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SplitFiles> FilesOf(const DataDef& data, Split split, const FileShard& shard) {
  if (data.has_idx() == data.has_csv() || data.has_text()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "data: expected exactly one of idx, csv and text, got ",
        data.has_idx() || data.has_csv() ? "several" : "none",
        ". Remedy: name the files in data { idx { ... } }, data { csv { ... } } or data { text { "
        "... } }."));
  }
  if (split == Split::kTest) {
    LOCKSTEP_ASSIGN_OR_RETURN(SplitFiles test,
                              data.has_csv() ? CsvFiles(data.csv(), split) : IdxTest(data.idx()));
    if (test.files.empty()) return test;
    LOCKSTEP_ASSIGN_OR_RETURN(test.files.front().states, TestStateFiles(data));
    return test;
  }
  LOCKSTEP_ASSIGN_OR_RETURN(SplitFiles split_files,
                            data.has_csv() ? CsvFiles(data.csv(), split) : IdxTrain(data.idx()));
  LOCKSTEP_ASSIGN_OR_RETURN(auto states, TrainStateFiles(data, split_files.files.size()));
  for (size_t i = 0; i < states.size(); ++i) split_files.files[i].states = std::move(states[i]);
  LOCKSTEP_RETURN_IF_ERROR(KeepShard(shard, &split_files.files));
  return split_files;
}

absl::Status CheckSameCount(const DataFile& file, int64_t features, int64_t labels) {
  if (features == labels) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      file.labels, ": expected ", features, " labels, one for each record of ", file.features,
      ", got ", labels, ". Remedy: name images and labels of the same set."));
}

absl::Status NoExamples(const DataFile& file) {
  return absl::DataLossError(absl::StrCat(file.features,
                                          ": line 2: expected at least one example, got the end of"
                                          " the file. Remedy: write one example on each line."));
}

absl::Status CheckSameColumns(const std::string& first_file,
                              const std::vector<std::string>& first_columns,
                              const std::string& file, const std::vector<std::string>& columns) {
  if (columns == first_columns) return absl::OkStatus();
  std::string difference =
      absl::StrCat(first_columns.size(), " columns as in ", first_file, ", got ", columns.size());
  if (columns.size() == first_columns.size()) {
    const auto [a, b] = std::mismatch(first_columns.begin(), first_columns.end(), columns.begin());
    difference = absl::StrCat("the columns of ", first_file, ", got \"", absl::CHexEscape(*b),
                              "\" in the place of \"", absl::CHexEscape(*a), "\"");
  }
  return absl::InvalidArgumentError(
      absl::StrCat(file, ": expected ", difference,
                   ". Remedy: name training and test files of the same data set."));
}

absl::Status CheckSameKind(const std::string& first_file, const RecordKind& first_kind,
                           const std::string& file, const RecordKind& kind) {
  if (kind == first_kind) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      file, ": expected ", Name(first_kind.type), " records of shape ", first_kind.shape.ToString(),
      " as in ", first_file, ", got ", Name(kind.type), " of shape ", kind.shape.ToString(),
      ". Remedy: name files of the same data set."));
}

}  // namespace lockstep
