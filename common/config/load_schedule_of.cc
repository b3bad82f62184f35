#include "common/config/load_schedule_of.h"

#include <algorithm>

namespace lockstep {

absl::StatusOr<LoadSchedule> LoadScheduleOf(const JobDef& job, int64_t examples,
                                            int64_t max_seq_len, int64_t num_workers) {
  const LocalSyncDef& local_sync = job.local_sync();
  return LoadSchedule::Create({.examples = examples,
                               .load = local_sync.load(),
                               .max_per_device_batch_size = local_sync.max_per_device_batch_size(),
                               .max_seq_len = max_seq_len,
                               .passes = local_sync.passes(),
                               .towers = std::max<int64_t>(1, job.towers()),
                               .workers = num_workers});
}

}  // namespace lockstep
