// The table of the job file's fields: the value of one that is left out, and what its numbers may
// be. Rules between fields are in job_rules.h.
#pragma once

#include "absl/status/status.h"
#include "proto/job.pb.h"

namespace lockstep {

// The job as written, before defaults: each number against its limits, each enumeration against
// its values. The first broken rule as INVALID_ARGUMENT "<field path>: <problem>. Remedy: ...".
absl::Status CheckJobFields(const JobDef& job);

// Gives each field that is left out its default. For a job that has passed CheckJobFields.
void FillJobFields(JobDef* job);

}  // namespace lockstep
