// Default values of the fields that a job file leaves out. docs/job.md lists the same values.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "proto/job.pb.h"

namespace lockstep {

// `folder` is absolute; paths that are empty stay empty.
void MakePathsAbsolute(absl::string_view folder, JobDef* job);

// True if the data have examples to evaluate on.
bool HasTestSet(const DataDef& data);

// For a job that has passed CheckJob; a job without a name gets that of its file.
void FillJobDefaults(const std::string& path, JobDef* job);

}  // namespace lockstep
