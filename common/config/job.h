// The job file and the model file that it names. docs/job.md is the reference for users.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/job.pb.h"
#include "proto/model.pb.h"

namespace lockstep {

// ps and workers together that `lockstep up` starts on one machine.
inline constexpr int kMaxLocalTasks = 1000;

struct LoadedJob {
  // Paths are absolute. Every field with a default of its own has it; what depends on the number
  // of workers is left to ValidateJob.
  JobDef job;
  // As written. ModelGraph::Build checks it; its errors belong to the file job.model().
  ModelDef model;
};

// Reads the job file at `path` and its model file. Errors name the file, then line and column or
// the field, and the remedy: NOT_FOUND for a missing file, INVALID_ARGUMENT for the rest. Data
// files are not looked at: they need not be on this host.
absl::StatusOr<LoadedJob> LoadJob(const std::string& path);

// Checks what depends on the number of workers of the cluster and fills it in: afterwards
// sync.replicas_to_aggregate, both global_batch and batch_per_tower, and under FIFO
// sync.init_tokens have their values. May be called again with the same number. INVALID_ARGUMENT
// naming the field and the remedy; the caller adds the file's name.
absl::Status ValidateJob(JobDef* job, int64_t num_workers);

}  // namespace lockstep
