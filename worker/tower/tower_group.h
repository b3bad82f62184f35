// The towers of one worker: each takes its batch at the same time, and the mean over them leaves
// the worker as if one tower had taken all.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/model/graph.h"
#include "worker/device/device.h"
#include "worker/device/device_queue.h"
#include "worker/device/tower_devices.h"
#include "worker/ops/op_table.h"
#include "worker/tower/delayed_tower.h"
#include "worker/tower/device_sums.h"
#include "worker/tower/gradient_copies.h"
#include "worker/tower/make_reducer.h"
#include "worker/tower/peer_gradients.h"
#include "worker/tower/reduction_streams.h"
#include "worker/tower/tower.h"
#include "worker/tower/tower_reducer.h"
#include "worker/tower/training_towers.h"

namespace lockstep::worker {

struct TowerGroupOptions {
  int64_t batch_per_tower = 0;           // the largest
  std::vector<int64_t> smaller_batches;  // per tower, that are given too
  ReducerOptions reducer;                // and the number of towers
  TowerDelay delay;                      // for trials
};

// Not thread-safe: one call at a time. On a CPU a single tower computes on the caller's thread and
// into the caller's gradients; several have a thread each and gradients of their own.
class TowerGroup final : public TrainingTowers {
 public:
  // Errors as Tower::Create. Devices and ops, which are of each of them, outlive the group. The
  // first device reduces what the towers of all have computed; where the devices have a
  // communicator, it sums what it can on the way there.
  static absl::StatusOr<std::unique_ptr<TowerGroup>> Create(const ModelGraph& graph,
                                                            const TowerDevices& devices,
                                                            const OpTable& ops,
                                                            const TowerGroupOptions& options);

  int size() const override { return static_cast<int>(towers_.size()); }

  // As Train, with the one element of `memory`.
  absl::StatusOr<float> TrainStep(std::span<const Batch> batches,
                                  std::span<const TowerMemory> memory, uint64_t random_key,
                                  const GradientReady& ready) override;

  // One training pass with batches[t] on tower t, all of one size that the options tell. Enqueues
  // the whole step, then waits for one gradient after the other. `variables` have the rows of all
  // batches. `gradients`, in host memory, receive what Tower::Train tells, reduced over the towers
  // and clipped. Returns the mean loss. All work has ended when it returns.
  absl::StatusOr<float> Train(std::span<const Batch> batches, const VariableValues& variables,
                              std::span<const MutableTensorView> gradients, uint64_t random_key,
                              const GradientReady& ready);
  // The mean loss of each tower's batch in the last Train that succeeded. Valid until the next one.
  std::span<const float> device_losses() const { return losses_; }

 private:
  TowerGroup(const ModelGraph& graph, Device* device, std::vector<std::unique_ptr<Tower>> towers);
  absl::Status PrepareReduction(const OpTable& ops, const ModelGraph& graph,
                                ReducerOptions options);
  absl::Status PrepareSums(const OpTable& ops, const ModelGraph& graph,
                           const TowerDevices& devices);
  absl::Status PreparePeers(const ModelGraph& graph, const TowerDevices& devices,
                            int64_t row_examples);

  absl::Status EnqueueTowers(std::span<const Batch> batches, const VariableValues& variables,
                             std::span<const MutableTensorView> gradients, uint64_t random_key);
  // From the last variable to the first: reduction, then the copy to the host, unless it is late.
  absl::Status EnqueueReduction(std::span<const MutableTensorView> gradients);
  absl::StatusOr<TowerGradient> Reduce(int variable, const MutableTensorView& host);
  bool IsSummed(int variable) const { return sums_ != nullptr && sums_->has(variable); }
  // Whether the copy to this memory is enqueued once AwaitPeers has returned. It may block, and a
  // device that others wait for may have failed: nobody would see it.
  bool IsCopiedLate(const MutableTensorView& host) const;
  absl::Status Announce(std::span<const MutableTensorView> gradients, const GradientReady& ready);
  // On the other devices, before what is reduced of it: an error of a device is seen by waiting for
  // that device's events alone, and the first device might wait for ever.
  absl::Status AwaitPeers(int variable);
  // Nothing runs afterwards, also where the step ends with an error.
  absl::Status Finish(const absl::Status& step);

  Device* const device_;                // that reduces
  std::vector<int> descending_;         // variables that are not frozen, from the last to the first
  std::unique_ptr<OpContext> context_;  // of the reducer
  std::unique_ptr<ReductionStreams>
      streams_;  // for reduction, then copies: beside the backward passes
  // Of copies that are late: others are behind work of later variables. nullopt: all towers are on
  // device_.
  std::optional<DeviceQueue> late_copies_;
  GradientCopies copies_;
  std::unique_ptr<TowerReducer> reducer_;              // may be null
  std::unique_ptr<DeviceSums> sums_;                   // null: gradients are copied to device_
  std::vector<std::unique_ptr<PeerGradients>> peers_;  // by tower; null: it is on device_
  const std::vector<std::unique_ptr<Tower>> towers_;

  // Of the step at hand.
  std::vector<std::span<const TowerGradient>> by_tower_;  // then by variable
  std::vector<TowerGradient> of_variable_;                // by tower
  std::vector<TowerGradient> reduced_;                    // by variable
  bool awaits_all_ = false;                               // the first gradient waits for all others
  std::vector<int> group_;                                // variables that are announced together
  std::vector<float> losses_;                             // by tower
};

}  // namespace lockstep::worker
