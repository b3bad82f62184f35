#include "chief/plan/csv_columns.h"

#include "common/base/remedy.h"
#include "common/dataset/split_files.h"

namespace lockstep::chief {

absl::Status SetColumns(const std::vector<std::string>& columns, JobDef* job) {
  if (!job->data().has_csv()) return absl::OkStatus();
  CsvFile* const csv = job->mutable_data()->mutable_csv();
  if (csv->columns().empty()) {
    *csv->mutable_columns() = {columns.begin(), columns.end()};
    return absl::OkStatus();
  }
  return SetRemedy(
      CheckSameColumns("data.csv.columns", {csv->columns().begin(), csv->columns().end()},
                       csv->train(0), columns),
      "correct it, or leave it out");
}

}  // namespace lockstep::chief
