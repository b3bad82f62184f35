// One replica that trains: all towers of a worker together, or in an asynchronous job one of them,
// with its batches, its strategy and the loop over them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/client/gradient_memory.h"
#include "common/model/graph.h"
#include "proto/chief.pb.h"
#include "worker/cache/variable_layout.h"
#include "worker/data/pipeline.h"
#include "worker/device/tower_devices.h"
#include "worker/ops/op_table.h"
#include "worker/service/group_source.h"
#include "worker/step/progress.h"
#include "worker/step/step_runner.h"
#include "worker/step/timeline.h"
#include "worker/strategy/parameter_server/shard_group.h"
#include "worker/strategy/update_strategy.h"
#include "worker/tower/batch_rows.h"
#include "worker/tower/delayed_tower.h"
#include "worker/tower/training_towers.h"

namespace lockstep::worker {

// Of one worker.
int TowersOf(const JobDef& job);
// How many replicas a worker has: one, or in an asynchronous job one for each tower.
int NumTrainers(const JobDef& job);
// Of a worker's devices those of this replica's towers.
TowerDevices DevicesOfTrainer(const JobDef& job, const TowerDevices& devices, size_t trainer);

struct TrainerOptions {
  explicit TrainerOptions(const TowerDevices& of_towers) : devices(of_towers) {}

  // Constant; outlives the trainer.
  const RegisterTaskReply* registration = nullptr;
  // Of the trainer's towers; they outlive it.
  TowerDevices devices;
  // Whose identity names worker and tower.
  ShardGroupOptions shards;
  // TowerGroupOptions::smaller_batches.
  std::vector<int64_t> smaller_batches;
  TowerDelay delay;  // for trials
  // As in StepRunnerOptions. They outlive the trainer.
  const std::atomic<bool>* departs = nullptr;
  Timeline* timeline = nullptr;
  ExampleLog* example_log = nullptr;
};

// What trainers of a worker share. All of it outlives them.
struct TrainerResources {
  const ModelGraph* graph = nullptr;
  const VariableLayout* layout = nullptr;
  const VariableLayout* loss_layout =
      nullptr;  // of a replicated job: ReplicatedStrategy::LossLayout
  ShardGroupResources shards;
  const OpTable* ops = nullptr;  // of the devices
  // Of a replicated job: threads that apply updates; what GroupSourceOptions has.
  int threads = 1;
  PeerService* peers = nullptr;
  rpc::EventQueue* queue = nullptr;
  std::shared_ptr<const rpc::Credentials> credentials = nullptr;  // of calls
  GradientMemory* memory = nullptr;  // null: gradients are shards.make_tensor's
};

class Trainer {
 public:
  // What the memory of all trainers of a worker should have; 0: they share none.
  static uint64_t GradientBytes(const JobDef& job, const ModelGraph& graph,
                                const VariableLayout& layout);

  // RESOURCE_EXHAUSTED as CheckRoomFor, naming the largest variable: the variables of all trainers
  // of a worker certainly do not fit into its memory. `values_in_place` as in ShardGroupOptions.
  // Other errors as OptimizerRules::Create.
  static absl::Status CheckMemory(const JobDef& job, const VariableLayout& layout,
                                  bool values_in_place);

  // `data` has batches for the towers of this trainer. `progress` outlives the trainer. Errors as
  // TowerGroup::Create and VariableCache::Create.
  static absl::StatusOr<std::unique_ptr<Trainer>> Create(const TrainerOptions& options,
                                                         const TrainerResources& resources,
                                                         std::unique_ptr<Pipeline> data,
                                                         Progress* progress);

  // As StepRunner::Run: once, on one thread.
  absl::Status Run();
  // How gradients are reduced, and why so, in a replicated job; otherwise empty.
  const std::string& reduction() const { return reduction_; }
  // The chief's view of the group of a replicated job. Thread-safe.
  void SetGroup(const GroupView& view);
  // GroupSource::failed_view. Thread-safe.
  GroupViewId failed_view() const {
    return groups_ == nullptr ? GroupViewId() : groups_->failed_view();
  }
  // Ends Run with CANCELLED. Thread-safe.
  void Cancel() {
    strategy_->Cancel();
    data_->Cancel();
  }
  // UpdateStrategy::CancelAfterGradient. Thread-safe.
  bool CancelAfterGradient() { return strategy_->CancelAfterGradient(); }

 private:
  Trainer(const TrainerOptions& options, const TrainerResources& resources,
          std::unique_ptr<Pipeline> data, Progress* progress);
  absl::Status MakeTowers();
  // Of one loss, or of the job's only one.
  absl::Status AddTowers(const ModelGraph& graph, const OptimizerDef& optimizer);
  absl::Status MakeStrategy();
  absl::Status MakeReplicatedTowers();
  absl::Status MakeReplicatedStrategy();

  const TrainerOptions options_;
  const TrainerResources resources_;
  Progress* const progress_;
  const std::unique_ptr<Pipeline> data_;
  BatchRows rows_;
  std::string reduction_;
  std::vector<std::unique_ptr<TrainingTowers>> towers_;  // by loss
  GroupSource* groups_ = nullptr;                        // the strategy's, of a replicated job
  std::unique_ptr<UpdateStrategy> strategy_;
};

}  // namespace lockstep::worker
