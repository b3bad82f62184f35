// Derives from a job the files that a worker reads and the steps that transform their examples.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/dataset/example_table.h"
#include "common/dataset/transform_step.h"
#include "proto/job.pb.h"

namespace lockstep {

// The index of a worker and the number of workers.
struct ReplicaOf {
  int64_t replica = 0;
  int64_t num_replicas = 1;
};

// The training files of this worker: all, unless data.auto_shard is FILE.
FileShard FileShardOf(const DataDef& data, const ReplicaOf& replica);
// The number of examples in a shard. `by_file`: the number in each training file of the job.
int64_t ExamplesOf(absl::Span<const int64_t> by_file, const FileShard& shard);

// The steps of data.transform, which is not empty and obeys the rules of the job. Batches have
// `batch` examples. With auto_shard RECORD and no shard of the user's own, a shard comes first.
std::vector<TransformStep> TransformStepsOf(const DataDef& data, const ReplicaOf& replica,
                                            int64_t batch);

}  // namespace lockstep
