// Describes the changes of a job since the run that it continues.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "proto/job.pb.h"
#include "proto/model.pb.h"

namespace lockstep::chief {

// "max_steps: 60000 -> 3000; optimizer.learning_rate.base: 0.002 -> 0.001; model: ...": each field
// of job and model that differs from the texts of the run before (as in a manifest), with both
// values. Empty: no difference, or no texts. Pure.
std::string DescribeJobChanges(absl::string_view job_text, absl::string_view model_text,
                               const JobDef& job, const ModelDef& model);

}  // namespace lockstep::chief
