// The examples that a worker trains and evaluates on, as its job says.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/model/graph.h"
#include "proto/chief.pb.h"
#include "worker/data/pipeline.h"
#include "worker/device/tower_devices.h"
#include "worker/local_sync/local_sync_pipeline.h"

namespace lockstep::worker {

struct TrainingData {
  std::vector<std::unique_ptr<Pipeline>> by_trainer;  // until it has taken it
  LocalSyncPipeline* local_sync = nullptr;            // that of a job with local_sync
  std::vector<int64_t> smaller_batches;               // TowerGroupOptions::smaller_batches
};

// Of worker `worker`, for towers on these devices, which outlive the data. Errors as
// Pipeline::Open; INVALID_ARGUMENT where the files have other examples than the chief has counted.
absl::StatusOr<TrainingData> OpenTrainingData(const RegisterTaskReply& registration,
                                              uint32_t worker, const ModelGraph& graph,
                                              const TowerDevices& devices);

// Null: the job names no test files, or they have no labels. Errors as TestSet::Open, and as above.
absl::StatusOr<std::unique_ptr<TestSet>> OpenTestSet(const RegisterTaskReply& registration,
                                                     const ModelGraph& graph);

}  // namespace lockstep::worker
