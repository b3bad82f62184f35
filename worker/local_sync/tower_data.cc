#include "worker/local_sync/tower_data.h"

#include "common/base/status_macros.h"

namespace lockstep::worker {

absl::StatusOr<std::unique_ptr<TowerData>> TowerData::Create(Device* device, int64_t towers) {
  std::unique_ptr<TowerData> data(new TowerData(device, towers));
  device->MakeCurrent();
  LOCKSTEP_ASSIGN_OR_RETURN(data->copied_, device->CreateEvent());
  LOCKSTEP_ASSIGN_OR_RETURN(data->stream_, device->CreateStream({}));
  return data;
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
    if (!device_->is_host()) LOCKSTEP_RETURN_IF_ERROR(CopyToDevice(&part));
  }
  stream_->Record(copied_.get());
  return copied_->Wait();
}

absl::Status TowerData::CopyToDevice(Part* part) {
  size_t bytes = 0;
  for (const TensorView& array : part->arrays) bytes += Tensor::RoomFor(array.num_bytes());
  LOCKSTEP_ASSIGN_OR_RETURN(part->memory, device_->Allocate(bytes));
  std::byte* to = part->memory.get();
  for (TensorView& array : part->arrays) {
    stream_->CopyToDevice(to, array.data, array.num_bytes());
    array.data = to;
    to += Tensor::RoomFor(array.num_bytes());
  }
  return absl::OkStatus();
}

TensorView TowerData::Rows(int64_t tower, size_t array, const RowSpan& rows) const {
  return RowRange(parts_[tower].arrays[array], rows.begin, rows.count);
}

}  // namespace lockstep::worker
