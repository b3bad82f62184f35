#include "worker/tower/replicated_towers.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/philox.h"
#include "common/base/status_macros.h"
#include "worker/tower/for_each_layer.h"

namespace lockstep::worker {

absl::StatusOr<std::unique_ptr<ReplicatedTowers>> ReplicatedTowers::Create(
    const ModelGraph& graph, const TowerDevices& devices, const OpTable& ops,
    const ReplicatedTowersOptions& options) {
  if (options.towers < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("towers: expected at least 1, got ", options.towers));
  }
  std::vector<int64_t> batches = {options.batch_per_tower};
  batches.insert(batches.end(), options.smaller_batches.begin(), options.smaller_batches.end());
  const TowerOptions tower_options{.batches = std::move(batches),
                                   .row_examples = options.batch_per_tower * options.towers,
                                   .background = options.towers > 1};
  std::vector<std::unique_ptr<Tower>> towers(static_cast<size_t>(options.towers));
  for (size_t tower = 0; tower < towers.size(); ++tower) {
    LOCKSTEP_ASSIGN_OR_RETURN(towers[tower],
                              Tower::Create(graph, devices.of(tower), ops, tower_options));
  }
  towers[0] = Delayed(std::move(towers[0]), options.delay);
  std::unique_ptr<ReplicatedTowers> made(new ReplicatedTowers(graph, devices, std::move(towers)));
  LOCKSTEP_RETURN_IF_ERROR(made->PrepareCopies(graph));
  return made;
}

ReplicatedTowers::ReplicatedTowers(const ModelGraph& graph, const TowerDevices& devices,
                                   std::vector<std::unique_ptr<Tower>> towers)
    : towers_(std::move(towers)),
      devices_(devices),
      by_tower_(towers_.size()),
      complete_(towers_.size()) {
  for (int variable = static_cast<int>(graph.variables().size()) - 1; variable >= 0; --variable) {
    if (!graph.variables()[variable].frozen) descending_.push_back(variable);
  }
}

absl::Status ReplicatedTowers::PrepareCopies(const ModelGraph& graph) {
  LOCKSTEP_ASSIGN_OR_RETURN(queues_, DeviceQueue::CreateFor(devices_));
  for (size_t tower = 0; tower < towers_.size(); ++tower) {
    complete_[tower].resize(graph.variables().size());
    LOCKSTEP_ASSIGN_OR_RETURN(copies_.emplace_back(),
                              GradientCopies::Create(graph.variables().size(), devices_.of(tower)));
  }
  return absl::OkStatus();
}

absl::StatusOr<float> ReplicatedTowers::TrainStep(std::span<const Batch> batches,
                                                  std::span<const TowerMemory> memory,
                                                  uint64_t random_key, const GradientReady& ready) {
  LOCKSTEP_CHECK(batches.size() == towers_.size() && memory.size() == towers_.size());
  absl::Status status = Enqueue(batches, memory, random_key);
  if (status.ok()) status = Announce(ready);
  status.Update(Finish());
  if (!status.ok()) return status;
  float sum = towers_[0]->loss();
  for (size_t tower = 1; tower < towers_.size(); ++tower) sum += towers_[tower]->loss();
  return sum * (1.0f / static_cast<float>(towers_.size()));
}

absl::Status ReplicatedTowers::Enqueue(std::span<const Batch> batches,
                                       std::span<const TowerMemory> memory, uint64_t random_key) {
  for (size_t tower = 0; tower < towers_.size(); ++tower) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        by_tower_[tower],
        towers_[tower]->Train(batches[tower], memory[tower].values, memory[tower].gradients,
                              KeyOfTower(random_key, tower, towers_.size())));
  }
  EnqueueCopies(memory);
  return absl::OkStatus();
}

void ReplicatedTowers::EnqueueCopies(std::span<const TowerMemory> memory) {
  for (const int variable : descending_) {
    for (size_t tower = 0; tower < towers_.size(); ++tower) {
      TowerGradient gradient = by_tower_[tower][static_cast<size_t>(variable)];
      copies_[tower].Enqueue(variable, memory[tower].gradients[static_cast<size_t>(variable)],
                             queues_[devices_.index_of(tower)].stream(), &gradient);
      complete_[tower][static_cast<size_t>(variable)] = gradient.ready;
    }
  }
}

absl::Status ReplicatedTowers::Announce(const GradientReady& ready) {
  return ForEachLayer(descending_, by_tower_[0], &group_, [&](std::span<const int> variables) {
    for (const std::vector<Event*>& of_tower : complete_) {
      // The last one's: all of the layer are complete then, or copied in this order.
      LOCKSTEP_RETURN_IF_ERROR(of_tower[static_cast<size_t>(variables.back())]->Wait());
    }
    ready(variables);
    return absl::OkStatus();
  });
}

absl::Status ReplicatedTowers::Finish() {
  absl::Status status;
  for (const std::unique_ptr<Tower>& tower : towers_) status.Update(tower->Finish());
  for (const DeviceQueue& queue : queues_) status.Update(queue.Finish());
  return status;
}

}  // namespace lockstep::worker
