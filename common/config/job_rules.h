// What a job file must and must not say. Every function returns the first broken rule as
// INVALID_ARGUMENT "<field path>: <problem>. Remedy: ...".
#pragma once

#include "absl/status/status.h"
#include "proto/job.pb.h"
#include "proto/model.pb.h"

namespace lockstep {

// As what float32 tensors may travel (transport.wire_type).
inline constexpr DataType kWireTypes[] = {FLOAT32, BFLOAT16, FLOAT16};

// The job as written, before defaults.
absl::Status CheckJob(const JobDef& job);

// The parts of CheckJob that have a file of their own.
absl::Status CheckOptimizer(const OptimizerDef& optimizer);
absl::Status CheckSync(const SyncDef& sync);

// What only the shape of an example can tell.
absl::Status CheckJobAgainstModel(const JobDef& job, const ModelDef& model);

}  // namespace lockstep
