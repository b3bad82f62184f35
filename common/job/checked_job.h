// A job, its model and its data, checked against one another before any process needs them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/config/job.h"
#include "common/dataset/measure.h"
#include "common/model/graph.h"

namespace lockstep {

struct CheckedJob {
  JobDef job;  // complete: for this number of workers
  ModelDef model;
  ModelGraph graph;
  std::vector<uint32_t> losses;  // AssignLosses
  DatasetSizes examples;

  // Completes the job for `num_workers`, builds its model and reads its data: all of a CSV file, of
  // IDX files the headers and the labels. The first thing that is wrong, one line naming file,
  // place and remedy: INVALID_ARGUMENT, NOT_FOUND, DATA_LOSS. `job_file` is for messages.
  static absl::StatusOr<CheckedJob> Create(const std::string& job_file, LoadedJob loaded,
                                           int64_t num_workers);
};

// Makes the folder that checkpoints go to, if the job names one. The error names job file and
// field.
absl::Status MakeCheckpointFolder(const std::string& job_file, const JobDef& job);

}  // namespace lockstep
