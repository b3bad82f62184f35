// Prefetch to the device: the batches of another pipeline, in memory of the towers' devices before
// their step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/tensor/tensor.h"
#include "worker/data/pipeline.h"
#include "worker/data/prefetcher.h"
#include "worker/device/device.h"
#include "worker/device/device_queue.h"
#include "worker/device/tower_devices.h"

namespace lockstep::worker {

// Copies on a thread and streams of its own, while the towers compute. Use as a Pipeline.
class DevicePrefetcher final : public Pipeline {
 public:
  static constexpr int64_t kBatchesAhead = 1;  // per tower

  // Reads `host`, of which nobody else reads from now on. Has the batches of `ahead` >= 1 steps
  // beside those in use in memory of their towers' devices, which outlive the pipeline. On a host
  // device they are there already: it needs no DevicePrefetcher. Takes all memory of the devices
  // that it ever has: RESOURCE_EXHAUSTED where that is missing.
  static absl::StatusOr<std::unique_ptr<Pipeline>> Create(std::unique_ptr<Pipeline> host,
                                                          const TowerDevices& devices,
                                                          int64_t ahead = kBatchesAhead);

  // The thread may wait for `host`.
  ~DevicePrefetcher() override { host_->Cancel(); }

  // Batches of loaded rows. After an error of `host` or the device it returns that.
  absl::StatusOr<const std::vector<Batch>*> BatchesFor(GlobalStep step) override;
  void Cancel() override { host_->Cancel(); }
  bool IsReady(GlobalStep step) const override { return prefetcher_.Has(step.value()); }
  int64_t num_examples() const override { return host_->num_examples(); }
  int64_t last_step() const override { return host_->last_step(); }

 private:
  struct BatchMemory {
    Stream* stream = nullptr;
    Tensor host;  // bytes; pinned where the host can pin them
    DeviceBuffer device;
    size_t used = 0;  // of both, by the tensors so far
  };
  // The memory of the batches of one step.
  struct StepMemory {
    const std::vector<Batch>* batches = nullptr;  // null: of none yet
    std::vector<BatchMemory> by_tower;
  };

  DevicePrefetcher(std::unique_ptr<Pipeline> host, std::vector<StepMemory> memory,
                   std::vector<DeviceQueue> queues, int64_t ahead);

  // Of `steps` steps, whose batches take so many bytes by tower.
  static absl::StatusOr<std::vector<StepMemory>> Allocate(std::span<const size_t> bytes,
                                                          const TowerDevices& devices,
                                                          std::span<const DeviceQueue> queues,
                                                          int64_t steps);

  // Of the prefetcher's thread.
  absl::Status Load(int64_t step, std::vector<Batch>* batches);
  StepMemory* MemoryFor(const std::vector<Batch>* batches);
  static void LoadBatch(const Batch& from, BatchMemory* memory, Batch* to);
  // Enqueues the copy of a tensor. Returns where it will be; `on_host` has it already.
  static TensorView CopyToDevice(const Tensor& from, BatchMemory* memory, TensorView* on_host);
  absl::Status status() const;

  const std::unique_ptr<Pipeline> host_;
  std::vector<StepMemory> memory_;  // of the step in use and those ahead
  mutable absl::Mutex mutex_;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);  // the first error
  const std::vector<DeviceQueue> queues_;        // by device
  Prefetcher prefetcher_;                        // last: its thread uses all above
};

}  // namespace lockstep::worker
