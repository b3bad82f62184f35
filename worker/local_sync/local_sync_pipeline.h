// The training data of one replica of a job with local_sync: loads of the towers, and their
// minibatches in an order drawn from the seed.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/local_sync/load_schedule.h"
#include "common/tensor/tensor_maker.h"
#include "worker/data/example_stream.h"
#include "worker/data/pipeline.h"
#include "worker/data/prefetcher.h"
#include "worker/device/tower_devices.h"
#include "worker/local_sync/local_sync_parallel_optimizer.h"

namespace lockstep::worker {

struct LocalSyncPipelineOptions {
  uint64_t seed = 0;
  int64_t replica = 0;
  LoadScheduleOptions loads;  // without the number of examples and their length
};

// What the towers have in their memory.
struct LoadReport {
  uint64_t loads = 0;  // so far
  uint64_t rows = 0;   // of the load at hand, over all towers
  int64_t pass = 0;    // over it, from 0
  int64_t passes = 0;
  int64_t per_device_batch_size = 0;
  uint64_t bytes_to_towers = 0;  // by all loads
};

// The examples of a step are a function of (seed, replica, step) alone: a worker may begin within
// a load. One caller at a time, except for Report.
class LocalSyncPipeline final : public Pipeline {
 public:
  // `devices` are those of the towers and outlive the pipeline. Takes the memory of theirs that
  // loads need. Errors as Pipeline::Open and LoadSchedule::Create; RESOURCE_EXHAUSTED where a
  // device has no memory for a load.
  static absl::StatusOr<std::unique_ptr<LocalSyncPipeline>> Open(
      const DataDef& data, const ExampleSpec& spec, const LocalSyncPipelineOptions& options,
      const TowerDevices& devices);

  absl::StatusOr<const std::vector<Batch>*> BatchesFor(GlobalStep step) override;
  bool IsReady(GlobalStep step) const override;
  int64_t num_examples() const override { return stream_.num_examples(); }
  int64_t last_step() const override { return schedule_.last_step(); }

  const LoadSchedule& schedule() const { return schedule_; }
  // Batches per tower of the last load of a data epoch, where they are smaller than the others.
  std::vector<int64_t> smaller_batches() const;
  LoadReport Report() const;  // thread-safe

 private:
  LocalSyncPipeline(const LocalSyncPipelineOptions& options, const LoadSchedule& schedule,
                    ExampleStream stream, std::unique_ptr<LocalSyncParallelOptimizer> optimizer,
                    const TensorMaker& make_tensor);

  absl::Status Load(int64_t load);
  // The order of the minibatches of a pass.
  void DrawOrder(int64_t load, int64_t pass);

  const LocalSyncPipelineOptions options_;
  const LoadSchedule schedule_;
  ExampleStream stream_;  // of the prefetcher's thread
  const std::unique_ptr<LocalSyncParallelOptimizer> optimizer_;
  int64_t load_ = -1;                  // what the towers have; -1: nothing
  std::span<const int64_t> examples_;  // of the load: their numbers
  int64_t pass_ = -1;                  // whose order order_ is
  std::vector<int64_t> order_;

  mutable absl::Mutex mutex_;
  LoadReport report_ ABSL_GUARDED_BY(mutex_);

  Prefetcher prefetcher_;  // of whole loads; last: its thread uses all above
};

}  // namespace lockstep::worker
