// What can be known to be wrong with a run before any of its processes starts.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "chief/plan/start_choice.h"
#include "proto/job.pb.h"

namespace lockstep::deploy {

// Checks the cluster that the job asks for, makes the chief's own plan of it (chief/plan), and the
// checkpoint folder. The first thing that is wrong, one line naming file, place and remedy. OK: a
// warning for the user: that a job which is to go on is done, or about what the job says and this
// machine does not do; empty: none.
absl::StatusOr<std::string> CheckRun(const std::string& job_path, const JobDef& job,
                                     const chief::StartChoice& start);

}  // namespace lockstep::deploy
