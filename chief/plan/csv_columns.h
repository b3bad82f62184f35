// Records the columns of a CSV file that the model is trained on.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/job.pb.h"

namespace lockstep::chief {

// Sets data.csv.columns of a job whose training files have these columns beside the label; without
// a header, none. INVALID_ARGUMENT if the job names others. Does nothing to a job without CSV
// files.
absl::Status SetColumns(const std::vector<std::string>& columns, JobDef* job);

}  // namespace lockstep::chief
