// Checks a run for errors before any of its processes starts.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "chief/plan/start_choice.h"
#include "proto/job.pb.h"

namespace lockstep::deploy {

// Checks the job's cluster, makes the chief's plan of the job (chief/plan), and checks the
// checkpoint folder. Returns the first error, one line naming file, place and remedy. OK: a warning
// for the user, or an empty text. It says that a job to be continued is done, or that this machine
// lacks something the job asks for.
absl::StatusOr<std::string> CheckRun(const std::string& job_path, const JobDef& job,
                                     const chief::StartChoice& start);

}  // namespace lockstep::deploy
