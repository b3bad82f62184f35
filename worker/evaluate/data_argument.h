// What `--data=FILE[,LABELS]` of the offline tools means.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/job.pb.h"
#include "worker/evaluate/trained_model.h"

namespace lockstep::worker {

// The job's description of its data with these files in the place of its test files, for a text the
// text itself: IDX images
// with IDX labels or without, or a CSV file whose label column may be missing. Which it is, the
// first bytes tell (through gzip, too). INVALID_ARGUMENT where the files cannot be that; errors of
// opening them.
absl::StatusOr<DataDef> DataFromArgument(absl::string_view argument, const TrainedModel& model);

}  // namespace lockstep::worker
