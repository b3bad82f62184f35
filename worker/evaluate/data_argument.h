// What `--data=FILE[,LABELS]` and `--states=FILE[,FILE]` of the offline tools mean. A comma that is
// part of a file's name separates nothing.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/job.pb.h"
#include "worker/evaluate/trained_model.h"

namespace lockstep::worker {

// The job's description of its data with these files in the place of its test files. A model of a
// text takes a text: its last data.text.held_out is the test set. Other models take IDX images with
// IDX labels or without, or a CSV file whose label column may be missing. Which it is, the first
// bytes tell (through gzip, too). INVALID_ARGUMENT where the files cannot be that; errors of
// opening them.
absl::StatusOr<DataDef> DataFromArgument(absl::string_view argument, const TrainedModel& model);

// `--states=FILE[,FILE]`: puts the files of rows, in the order of the model's state inputs, in the
// place of those of the job's test set. INVALID_ARGUMENT for another number of files, and for none
// where the job has files.
absl::Status SetStateFiles(absl::string_view argument, const TrainedModel& model, DataDef* data);

}  // namespace lockstep::worker
