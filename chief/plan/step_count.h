// Counts the steps of a job.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/dataset/measure.h"
#include "proto/job.pb.h"

namespace lockstep::chief {

// Returns max_steps of the job, or data_epochs in steps, rounded up. The job is complete.
// INVALID_ARGUMENT naming data_epochs if they are more steps than can be counted; errors of
// LoadScheduleOf and of CountGroups.
absl::StatusOr<GlobalStep> CountSteps(const JobDef& job, const DatasetSizes& examples,
                                      int64_t num_workers);

}  // namespace lockstep::chief
