// The rules of a job file. Every check returns the first broken rule as INVALID_ARGUMENT
// "<field path>: <problem>. Remedy: ...".
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/job.pb.h"
#include "proto/model.pb.h"

namespace lockstep {

// Wire types of float32 tensors (transport.wire_type).
inline constexpr DataType kWireTypes[] = {FLOAT32, BFLOAT16, FLOAT16};

// The job as written, before defaults.
absl::Status CheckJob(const JobDef& job);

// Checks that `path` is not empty and has no NUL.
absl::Status CheckPath(absl::string_view field, const std::string& path);

// The parts of CheckJob that have a file of their own.
absl::Status CheckData(const DataDef& data);
absl::Status CheckTransform(const DataDef& data);
absl::Status CheckOptimizer(const OptimizerDef& optimizer);
absl::Status CheckSync(const SyncDef& sync);
absl::Status CheckStrategy(const JobDef& job);
absl::Status CheckLosses(const JobDef& job);  // if there are any
absl::Status CheckPsReplicas(const JobDef& job);
absl::Status CheckMinReplicas(const JobDef& job);

// Sets the defaults of the fields that the job's losses leave out.
void FillLosses(JobDef* job);

// Rules that depend on the number of workers.
absl::Status CheckFileShards(const DataDef& data, int64_t num_workers);
absl::Status CheckStrategy(const JobDef& job, int64_t num_workers);
// The towers of each worker: at least 1.
int64_t TowersOf(const JobDef& job);
// With sync.min_replicas: sets batch_per_tower to that of the fewest workers that a step can have.
absl::Status FillLargestBatch(JobDef* job, int64_t num_workers);

// Rules that depend on the shape of an example.
absl::Status CheckJobAgainstModel(const JobDef& job, const ModelDef& model);

}  // namespace lockstep
