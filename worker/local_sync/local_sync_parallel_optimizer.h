// Loads a block of rows into the towers' memory once and makes steps of any of its minibatches:
// Ray's LocalSyncParallelOptimizer. common/local_sync has the rules.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/local_sync/load_plan.h"
#include "common/tensor/tensor.h"
#include "worker/data/batch.h"
#include "worker/device/tower_devices.h"
#include "worker/local_sync/tower_data.h"
#include "worker/tower/tower.h"
#include "worker/tower/tower_group.h"

namespace lockstep::worker {

struct LocalSyncOptions {
  int64_t max_per_device_batch_size = 0;  // rows
  int64_t towers = 1;
  int64_t state_inputs = 0;  // arrays with one row per sequence
};

// Of one step, over which the towers' mean decides.
struct DeviceLosses {
  std::span<const float> device_losses;  // by tower; valid until the next step
  float common_loss = 0;                 // their mean: towers have equally many rows
};

// Not thread-safe. The inputs are two arrays: features [n, ...] and labels [n, ...]. With q rows of
// state inputs, max_seq_len = n / q rows are a sequence. Where that is more than 1, it is the first
// dimension of an example: a batch of b rows has features [b / max_seq_len, max_seq_len, ...].
class LocalSyncParallelOptimizer {
 public:
  // `devices` are those of the towers and outlive the optimizer. INVALID_ARGUMENT for fewer than 1
  // tower or row.
  static absl::StatusOr<std::unique_ptr<LocalSyncParallelOptimizer>> Create(
      const LocalSyncOptions& options, const TowerDevices& devices);

  // TowerData::Reserve.
  absl::Status Reserve(size_t bytes) { return data_->Reserve(bytes); }

  // Replaces the load. Returns its tuples per device. The arrays of `inputs` have equally many
  // rows, and so have those of `state_inputs`; they stay as they are until the next load.
  // INVALID_ARGUMENT for another number of arrays, unequal rows, and all that LoadPlan::Create
  // refuses: nothing is loaded then.
  absl::StatusOr<int64_t> LoadData(std::span<const TensorView> inputs,
                                   std::span<const TensorView> state_inputs);

  // The minibatch at tuple `batch_index`, one batch per tower, valid until the next call, without
  // the numbers of its examples. FAILED_PRECONDITION before the first load, INVALID_ARGUMENT
  // outside of it. Allocates nothing.
  absl::StatusOr<std::vector<Batch>*> BatchesAt(int64_t batch_index);

  // One step of that minibatch by `towers`, which are on the optimizer's devices and have the
  // load's batch size. The other arguments are those of TowerGroup::Train.
  struct StepArguments {
    TowerGroup* towers = nullptr;
    VariableValues variables;
    std::span<const MutableTensorView> gradients;
    uint64_t random_key = 0;
  };
  absl::StatusOr<DeviceLosses> Optimize(int64_t batch_index, const StepArguments& step,
                                        const TowerGroup::GradientReady& ready);

  // The loss of that minibatch as one: the rows of all towers, unsplit, with the moments of all of
  // them where a layer takes those of its batch. No statistic moves. `tower` has memory for the
  // batches of all towers together, for training, and gradients of its own; `gradients` tell their
  // shapes. Errors as BatchesAt and Tower::Train.
  struct CommonLossArguments {
    Tower* tower = nullptr;
    VariableValues variables;
    std::span<const MutableTensorView> gradients;
    uint64_t random_key = 0;
  };
  absl::StatusOr<float> GetCommonLoss(int64_t batch_index, const CommonLossArguments& arguments);

  // Of the load; none before the first.
  const std::optional<LoadPlan>& plan() const { return plan_; }
  uint64_t bytes_to_towers() const { return data_->bytes_to_towers(); }

 private:
  LocalSyncParallelOptimizer(const LocalSyncOptions& options, std::unique_ptr<TowerData> data);
  // FAILED_PRECONDITION before the first load, and after one that failed.
  absl::Status CheckLoaded() const;
  // The minibatch in one piece, in host memory.
  Batch Unsplit(int64_t batch_index) const;

  const LocalSyncOptions options_;
  const std::unique_ptr<TowerData> data_;
  std::optional<LoadPlan> plan_;
  std::vector<TensorView> host_inputs_;  // of the load
  std::vector<TensorView> host_states_;
  std::vector<Batch> batches_;
};

}  // namespace lockstep::worker
