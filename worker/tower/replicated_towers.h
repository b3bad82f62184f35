// Towers that each have variables and gradients of their own (strategy replicated). Nothing is
// merged here.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/model/graph.h"
#include "worker/device/device_queue.h"
#include "worker/device/tower_devices.h"
#include "worker/ops/op_table.h"
#include "worker/tower/delayed_tower.h"
#include "worker/tower/gradient_copies.h"
#include "worker/tower/tower.h"
#include "worker/tower/training_towers.h"

namespace lockstep::worker {

struct ReplicatedTowersOptions {
  int towers = 1;
  int64_t batch_per_tower = 0;           // the largest
  std::vector<int64_t> smaller_batches;  // per tower, that are given too
  TowerDelay delay;                      // for trials: of the first tower
};

// On a CPU a single tower computes on the caller's thread; several have a thread each.
class ReplicatedTowers final : public TrainingTowers {
 public:
  // Errors as Tower::Create. Devices and ops, which are of each of them, outlive the towers.
  static absl::StatusOr<std::unique_ptr<ReplicatedTowers>> Create(
      const ModelGraph& graph, const TowerDevices& devices, const OpTable& ops,
      const ReplicatedTowersOptions& options);

  int size() const override { return static_cast<int>(towers_.size()); }
  // `memory` has an element for each tower, whose gradients it receives alone. `ready` means: on
  // every tower.
  absl::StatusOr<float> TrainStep(std::span<const Batch> batches,
                                  std::span<const TowerMemory> memory, uint64_t random_key,
                                  const GradientReady& ready) override;

 private:
  ReplicatedTowers(const ModelGraph& graph, const TowerDevices& devices,
                   std::vector<std::unique_ptr<Tower>> towers);

  absl::Status PrepareCopies(const ModelGraph& graph);
  absl::Status Enqueue(std::span<const Batch> batches, std::span<const TowerMemory> memory,
                       uint64_t random_key);
  // Of gradients that are on a device.
  void EnqueueCopies(std::span<const TowerMemory> memory);
  absl::Status Announce(const GradientReady& ready);
  // Waits until nothing uses the caller's memory, also after an error.
  absl::Status Finish();

  std::vector<int> descending_;  // variables that are not frozen, from the last to the first
  const std::vector<std::unique_ptr<Tower>> towers_;
  const TowerDevices devices_;
  std::vector<DeviceQueue> queues_;     // by device: for copies, beside the backward passes
  std::vector<GradientCopies> copies_;  // by tower

  // Of the step at hand.
  std::vector<std::span<const TowerGradient>> by_tower_;  // then by variable
  std::vector<std::vector<Event*>> complete_;             // likewise: when the host has it
  std::vector<int> group_;                                // variables that are announced together
};

}  // namespace lockstep::worker
