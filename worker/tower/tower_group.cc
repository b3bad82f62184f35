#include "worker/tower/tower_group.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "worker/tower/for_each_layer.h"

namespace lockstep::worker {

absl::StatusOr<std::unique_ptr<TowerGroup>> TowerGroup::Create(const ModelGraph& graph,
                                                               const TowerDevices& devices,
                                                               const OpTable& ops,
                                                               const TowerGroupOptions& options) {
  const int count = options.reducer.towers;
  if (count < 1) {
    return absl::InvalidArgumentError(absl::StrCat("towers: expected at least 1, got ", count));
  }
  std::vector<int64_t> batches = {options.batch_per_tower};
  batches.insert(batches.end(), options.smaller_batches.begin(), options.smaller_batches.end());
  const TowerOptions tower_options{.batches = std::move(batches),
                                   .row_examples = options.batch_per_tower * count,
                                   .own_gradients = count > 1,
                                   .background = count > 1};
  std::vector<std::unique_ptr<Tower>> towers(count);
  for (size_t tower = 0; tower < towers.size(); ++tower) {
    LOCKSTEP_ASSIGN_OR_RETURN(towers[tower],
                              Tower::Create(graph, devices.of(tower), ops, tower_options));
  }
  // One late tower delays them all.
  towers[0] = Delayed(std::move(towers[0]), options.delay);
  std::unique_ptr<TowerGroup> group(new TowerGroup(graph, devices.first(), std::move(towers)));
  LOCKSTEP_RETURN_IF_ERROR(group->PrepareReduction(ops, graph, options.reducer));
  LOCKSTEP_RETURN_IF_ERROR(group->PrepareSums(ops, graph, devices));
  LOCKSTEP_RETURN_IF_ERROR(group->PreparePeers(graph, devices, tower_options.row_examples));
  return group;
}

TowerGroup::TowerGroup(const ModelGraph& graph, Device* device,
                       std::vector<std::unique_ptr<Tower>> towers)
    : device_(device),
      peers_(towers.size()),
      towers_(std::move(towers)),
      by_tower_(towers_.size()),
      of_variable_(towers_.size()),
      reduced_(graph.variables().size()),
      losses_(towers_.size()) {
  for (int variable = static_cast<int>(graph.variables().size()) - 1; variable >= 0; --variable) {
    if (!graph.variables()[variable].frozen) descending_.push_back(variable);
  }
}

absl::Status TowerGroup::PrepareReduction(const OpTable& ops, const ModelGraph& graph,
                                          ReducerOptions options) {
  // So that one that is given a single sum of the towers' gradients divides it by their number.
  if (options.count == 0) options.count = options.towers;
  device_->MakeCurrent();
  LOCKSTEP_ASSIGN_OR_RETURN(
      streams_, ReductionStreams::Create(options.ps_device, options.towers, graph, device_));
  LOCKSTEP_ASSIGN_OR_RETURN(copies_, GradientCopies::Create(graph.variables().size(), device_));
  LOCKSTEP_ASSIGN_OR_RETURN(context_, ops.CreateContext(device_));
  LOCKSTEP_ASSIGN_OR_RETURN(
      reducer_, MakeReducer(options, graph, device_, ops, context_.get(), streams_.get()));
  return absl::OkStatus();
}

absl::Status TowerGroup::PrepareSums(const OpTable& ops, const ModelGraph& graph,
                                     const TowerDevices& devices) {
  if (devices.communicator() == nullptr) return absl::OkStatus();
  LOCKSTEP_ASSIGN_OR_RETURN(sums_, DeviceSums::Create(graph, towers_.size(), devices, ops));
  return absl::OkStatus();
}

absl::Status TowerGroup::PreparePeers(const ModelGraph& graph, const TowerDevices& devices,
                                      int64_t row_examples) {
  for (size_t tower = 0; tower < towers_.size(); ++tower) {
    if (devices.of(tower) == device_) continue;
    if (!late_copies_.has_value()) {
      LOCKSTEP_ASSIGN_OR_RETURN(late_copies_, DeviceQueue::Create(device_));
    }
    LOCKSTEP_ASSIGN_OR_RETURN(
        peers_[tower],
        PeerGradients::Create(
            graph, row_examples, [this](int variable) { return !IsSummed(variable); }, device_));
  }
  return absl::OkStatus();
}

absl::StatusOr<float> TowerGroup::TrainStep(std::span<const Batch> batches,
                                            std::span<const TowerMemory> memory,
                                            uint64_t random_key, const GradientReady& ready) {
  LOCKSTEP_CHECK(memory.size() == 1);
  return Train(batches, memory[0].values, memory[0].gradients, random_key, ready);
}

absl::StatusOr<float> TowerGroup::Train(std::span<const Batch> batches,
                                        const VariableValues& variables,
                                        std::span<const MutableTensorView> gradients,
                                        uint64_t random_key, const GradientReady& ready) {
  LOCKSTEP_CHECK(batches.size() == towers_.size());
  absl::Status status = EnqueueTowers(batches, variables, gradients, random_key);
  if (status.ok()) status = EnqueueReduction(gradients);
  if (status.ok()) status = Announce(gradients, ready);
  status.Update(Finish(status));
  if (!status.ok()) return status;
  for (size_t tower = 0; tower < towers_.size(); ++tower) losses_[tower] = towers_[tower]->loss();
  return gradients.back().as<float>()[0];
}

absl::Status TowerGroup::EnqueueTowers(std::span<const Batch> batches,
                                       const VariableValues& variables,
                                       std::span<const MutableTensorView> gradients,
                                       uint64_t random_key) {
  for (size_t tower = 0; tower < towers_.size(); ++tower) {
    const uint64_t key = KeyOfTower(random_key, tower, towers_.size());
    LOCKSTEP_ASSIGN_OR_RETURN(by_tower_[tower],
                              towers_[tower]->Train(batches[tower], variables, gradients, key));
  }
  return absl::OkStatus();
}

absl::Status TowerGroup::EnqueueReduction(std::span<const MutableTensorView> gradients) {
  for (const int variable : descending_) {
    LOCKSTEP_ASSIGN_OR_RETURN(reduced_[variable], Reduce(variable, gradients[variable]));
    if (reduced_[variable].ready == nullptr || IsCopiedLate(gradients[variable])) continue;
    copies_.Enqueue(variable, gradients[variable], streams_->common(), &reduced_[variable]);
  }
  awaits_all_ = false;
  if (reducer_ == nullptr) return absl::OkStatus();
  LOCKSTEP_ASSIGN_OR_RETURN(Event* const rest, reducer_->Finish());
  awaits_all_ = rest != nullptr;
  for (const int variable : descending_) {
    if (reduced_[variable].ready != nullptr) continue;
    reduced_[variable].ready = rest;
    reduced_[variable].stream = streams_->common();
    if (IsCopiedLate(gradients[variable])) continue;
    copies_.Enqueue(variable, gradients[variable], streams_->common(), &reduced_[variable]);
  }
  return absl::OkStatus();
}

absl::StatusOr<TowerGradient> TowerGroup::Reduce(int variable, const MutableTensorView& host) {
  const bool is_summed = IsSummed(variable);
  for (size_t tower = 0; tower < towers_.size(); ++tower) {
    of_variable_[tower] = by_tower_[tower][variable];
    if (is_summed || peers_[tower] == nullptr) continue;
    LOCKSTEP_RETURN_IF_ERROR(peers_[tower]->Enqueue(variable, &of_variable_[tower]));
  }
  if (is_summed) {
    LOCKSTEP_ASSIGN_OR_RETURN(of_variable_[0], sums_->Enqueue(variable, of_variable_));
    return reducer_->Reduce(variable, std::span(of_variable_).first(1), of_variable_[0].view);
  }
  if (reducer_ == nullptr) return of_variable_[0];
  return reducer_->Reduce(variable, of_variable_, device_->is_host() ? host : of_variable_[0].view);
}

bool TowerGroup::IsCopiedLate(const MutableTensorView& host) const {
  return late_copies_.has_value() && !device_->IsPinned(TensorView(host).bytes());
}

absl::Status TowerGroup::Announce(std::span<const MutableTensorView> gradients,
                                  const GradientReady& ready) {
  if (awaits_all_) {
    for (const int variable : descending_) LOCKSTEP_RETURN_IF_ERROR(AwaitPeers(variable));
  }
  return ForEachLayer(descending_, by_tower_[0], &group_, [&](std::span<const int> variables) {
    for (const int variable : variables) {
      LOCKSTEP_RETURN_IF_ERROR(AwaitPeers(variable));
      if (IsCopiedLate(gradients[variable])) {
        copies_.Enqueue(variable, gradients[variable], late_copies_->stream(), &reduced_[variable]);
      }
      LOCKSTEP_RETURN_IF_ERROR(reduced_[variable].ready->Wait());
    }
    ready(variables);
    return absl::OkStatus();
  });
}

absl::Status TowerGroup::AwaitPeers(int variable) {
  if (IsSummed(variable)) return sums_->Await(variable);
  for (size_t tower = 0; tower < towers_.size(); ++tower) {
    if (peers_[tower] == nullptr) continue;
    LOCKSTEP_RETURN_IF_ERROR(by_tower_[tower][variable].ready->Wait());
  }
  return absl::OkStatus();
}

absl::Status TowerGroup::Finish(const absl::Status& step) {
  absl::Status status;
  if (sums_ != nullptr) {
    if (!step.ok()) sums_->Abort(step);
    status.Update(sums_->Finish());
  }
  for (const std::unique_ptr<Tower>& tower : towers_) status.Update(tower->Finish());
  for (const std::unique_ptr<PeerGradients>& peer : peers_) {
    if (peer != nullptr) status.Update(peer->Finish());
  }
  status.Update(streams_->Finish());
  if (late_copies_.has_value()) status.Update(late_copies_->Finish());
  return status;
}

}  // namespace lockstep::worker
