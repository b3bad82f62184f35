#include "worker/local_sync/tower_data.h"

#include "common/base/status_macros.h"

namespace lockstep::worker {

absl::StatusOr<std::unique_ptr<TowerData>> TowerData::Create(const TowerDevices& devices,
                                                             int64_t towers) {
  LOCKSTEP_ASSIGN_OR_RETURN(std::vector<DeviceQueue> queues, DeviceQueue::CreateFor(devices));
  return std::unique_ptr<TowerData>(new TowerData(devices, std::move(queues), towers));
}

absl::Status TowerData::Load(const LoadPlan& plan, std::span<const TensorView> inputs,
                             std::span<const TensorView> state_inputs) {
  // Before the new rows need memory.
  for (Part& part : parts_) part = Part();
  const auto add = [](std::span<const TensorView> arrays, const RowSpan& rows, Part* part) {
    for (const TensorView& array : arrays) {
      part->arrays.push_back(RowRange(array, rows.begin, rows.count));
    }
  };
  for (size_t tower = 0; tower < parts_.size(); ++tower) {
    Part& part = parts_[tower];
    add(inputs, plan.RowsOf(static_cast<int64_t>(tower)), &part);
    add(state_inputs, plan.StateRowsOf(static_cast<int64_t>(tower)), &part);
    for (const TensorView& array : part.arrays) bytes_to_towers_ += array.num_bytes();
    if (!devices_.is_host()) LOCKSTEP_RETURN_IF_ERROR(CopyToDevice(tower, &part));
  }
  absl::Status status;
  for (const DeviceQueue& queue : queues_) status.Update(queue.Finish());
  return status;
}

absl::Status TowerData::CopyToDevice(size_t tower, Part* part) {
  size_t bytes = 0;
  for (const TensorView& array : part->arrays) bytes += Tensor::RoomFor(array.num_bytes());
  LOCKSTEP_ASSIGN_OR_RETURN(part->memory, devices_.of(tower)->Allocate(bytes));
  std::byte* to = part->memory.get();
  for (TensorView& array : part->arrays) {
    queues_[devices_.index_of(tower)].stream()->CopyToDevice(to, array.data, array.num_bytes());
    array.data = to;
    to += Tensor::RoomFor(array.num_bytes());
  }
  return absl::OkStatus();
}

TensorView TowerData::Rows(int64_t tower, size_t array, const RowSpan& rows) const {
  return RowRange(parts_[tower].arrays[array], rows.begin, rows.count);
}

}  // namespace lockstep::worker
