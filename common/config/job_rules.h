// What a job file must and must not say. Every function returns the first broken rule as
// INVALID_ARGUMENT "<field path>: <problem>. Remedy: ...".
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/job.pb.h"
#include "proto/model.pb.h"

namespace lockstep {

// As what float32 tensors may travel (transport.wire_type).
inline constexpr DataType kWireTypes[] = {FLOAT32, BFLOAT16, FLOAT16};

// The job as written, before defaults.
absl::Status CheckJob(const JobDef& job);

// Whether `path` can be one.
absl::Status CheckPath(absl::string_view field, const std::string& path);

// The parts of CheckJob that have a file of their own.
absl::Status CheckData(const DataDef& data);
absl::Status CheckTransform(const DataDef& data);
absl::Status CheckOptimizer(const OptimizerDef& optimizer);
absl::Status CheckSync(const SyncDef& sync);
absl::Status CheckStrategy(const JobDef& job);
absl::Status CheckLosses(const JobDef& job);  // where there are any
absl::Status CheckPsReplicas(const JobDef& job);
absl::Status CheckMinReplicas(const JobDef& job);

// Gives what the job's losses leave out its default.
void FillLosses(JobDef* job);

// What only the number of workers can tell.
absl::Status CheckFileShards(const DataDef& data, int64_t num_workers);
absl::Status CheckStrategy(const JobDef& job, int64_t num_workers);
// Of each worker: at least 1.
int64_t TowersOf(const JobDef& job);
// With sync.min_replicas: batch_per_tower is that of the fewest workers that a step can have.
absl::Status FillLargestBatch(JobDef* job, int64_t num_workers);

// What only the shape of an example can tell.
absl::Status CheckJobAgainstModel(const JobDef& job, const ModelDef& model);

}  // namespace lockstep
