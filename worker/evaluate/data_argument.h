// Parses `--data=FILE[,LABELS]` and `--states=FILE[,FILE]` of the offline tools. A comma that is
// part of a file's name is not a separator.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/job.pb.h"
#include "worker/evaluate/trained_model.h"

namespace lockstep::worker {

// Returns the job's data description with these files in place of its test files. A text model
// takes a text: its last data.text.held_out is the test set. Other models take IDX images with or
// without IDX labels, or a CSV file whose label column may be missing. The first bytes tell IDX
// from CSV, through gzip too. INVALID_ARGUMENT: the files do not fit. Errors of opening them.
absl::StatusOr<DataDef> DataFromArgument(absl::string_view argument, const TrainedModel& model);

// `--states=FILE[,FILE]`: replaces the state files of the job's test set. Files of rows come in the
// order of the model's state inputs. INVALID_ARGUMENT for another number of files, and for none if
// the job has files.
absl::Status SetStateFiles(absl::string_view argument, const TrainedModel& model, DataDef* data);

}  // namespace lockstep::worker
