// From a job with local_sync to the schedule of its loads.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/local_sync/load_schedule.h"
#include "proto/job.pb.h"

namespace lockstep {

// `job` has its defaults; `examples` is the size of its training data, of which each is
// `max_seq_len` rows. Errors as LoadSchedule::Create.
absl::StatusOr<LoadSchedule> LoadScheduleOf(const JobDef& job, int64_t examples,
                                            int64_t max_seq_len, int64_t num_workers);

}  // namespace lockstep
