#include "worker/tower/device_sums.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace lockstep::worker {
namespace {

bool IsSummed(const ModelVariable& variable) {
  return variable.trainable && !variable.frozen && !variable.sparse &&
         variable.dtype == DType::kFloat32;
}

}  // namespace

absl::StatusOr<std::unique_ptr<DeviceSums>> DeviceSums::Create(const ModelGraph& graph,
                                                               size_t towers,
                                                               const TowerDevices& devices,
                                                               const OpTable& ops) {
  LOCKSTEP_CHECK(devices.communicator() != nullptr && towers >= devices.size());
  std::unique_ptr<DeviceSums> sums(new DeviceSums(devices));
  LOCKSTEP_RETURN_IF_ERROR(sums->Prepare(graph, towers, ops));
  return sums;
}

absl::Status DeviceSums::Prepare(const ModelGraph& graph, size_t towers, const OpTable& ops) {
  LOCKSTEP_ASSIGN_OR_RETURN(queues_, DeviceQueue::CreateFor(devices_));
  for (const DeviceQueue& queue : queues_) streams_.push_back(queue.stream());
  for (size_t device = 0; device < devices_.size() && device + devices_.size() < towers; ++device) {
    LOCKSTEP_ASSIGN_OR_RETURN(SumOnDevice sum, SumOnDevice::Create(devices_.of(device), ops));
    sums_.push_back(std::move(sum));
  }
  size_t most_bytes = 0;
  for (const ModelVariable& variable : graph.variables()) {
    Variable& own = variables_.emplace_back();
    if (!IsSummed(variable)) continue;
    most_bytes = std::max(most_bytes, TensorView{variable.dtype, variable.shape}.num_bytes());
    own.ranks.resize(devices_.size());
    for (size_t device = 0; device < devices_.size(); ++device) {
      LOCKSTEP_ASSIGN_OR_RETURN(own.ranks[device].passed, devices_.of(device)->CreateEvent());
      own.passed.push_back(own.ranks[device].passed.get());
    }
  }
  return devices_.communicator()->Reserve(most_bytes);
}

absl::StatusOr<TowerGradient> DeviceSums::Enqueue(int variable,
                                                  std::span<const TowerGradient> by_tower) {
  Variable& own = variables_[static_cast<size_t>(variable)];
  by_device_.clear();
  for (size_t device = 0; device < own.ranks.size(); ++device) {
    LOCKSTEP_RETURN_IF_ERROR(SumTowersOf(device, by_tower, &own.ranks[device]));
    by_device_.push_back(own.ranks[device].call.sum);
  }
  LOCKSTEP_RETURN_IF_ERROR(devices_.communicator()->ReduceToFirst(by_device_, streams_));
  for (size_t device = 0; device < own.ranks.size(); ++device) {
    streams_[device]->Record(own.ranks[device].passed.get());
  }
  return TowerGradient{
      .view = own.ranks[0].call.sum, .ready = own.ranks[0].passed.get(), .stream = streams_[0]};
}

absl::Status DeviceSums::SumTowersOf(size_t device, std::span<const TowerGradient> by_tower,
                                     Rank* rank) {
  Stream* const stream = streams_[device];
  SumOnDevice::Call* const call = &rank->call;
  call->terms.clear();
  for (size_t tower = device; tower < by_tower.size(); tower += devices_.size()) {
    by_tower[tower].AwaitOn(stream);
    call->terms.push_back(by_tower[tower].view);
  }
  call->sum = by_tower[device].view;
  return call->terms.size() == 1 ? absl::OkStatus() : sums_[device].Enqueue(call, stream);
}

absl::Status DeviceSums::Await(int variable) {
  return devices_.communicator()->Await(variables_[static_cast<size_t>(variable)].passed);
}

absl::Status DeviceSums::Finish() {
  absl::Status status;
  for (const DeviceQueue& queue : queues_) status.Update(queue.Finish());
  return status;
}

}  // namespace lockstep::worker
