// Checks that data.transform makes enough batches.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "common/dataset/measure.h"
#include "proto/job.pb.h"

namespace lockstep::chief {

// The job is complete. INVALID_ARGUMENT if a worker's data end before the last step, or if its
// batches differ in size.
absl::Status CheckBatches(const JobDef& job, const DatasetSizes& examples, int64_t num_workers,
                          GlobalStep max_steps);

}  // namespace lockstep::chief
