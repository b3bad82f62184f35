#include "worker/local_sync/tower_data.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/annotate.h"
#include "common/base/status_macros.h"

namespace lockstep::worker {
namespace {

// In errors: what there is no memory for.
std::string LoadOf(size_t tower) { return absl::StrCat("the load of tower ", tower); }

}  // namespace

absl::StatusOr<std::unique_ptr<TowerData>> TowerData::Create(const TowerDevices& devices,
                                                             int64_t towers) {
  LOCKSTEP_ASSIGN_OR_RETURN(std::vector<DeviceQueue> queues, DeviceQueue::CreateFor(devices));
  return std::unique_ptr<TowerData>(new TowerData(devices, std::move(queues), towers));
}

absl::Status TowerData::Reserve(size_t bytes) {
  if (devices_.is_host()) return absl::OkStatus();
  for (size_t tower = 0; tower < parts_.size(); ++tower) {
    LOCKSTEP_RETURN_IF_ERROR(Annotate(MakeRoom(tower, bytes), LoadOf(tower)));
  }
  return absl::OkStatus();
}

absl::Status TowerData::MakeRoom(size_t tower, size_t bytes) {
  Part& part = parts_[tower];
  if (part.memory != nullptr && bytes <= part.bytes) return absl::OkStatus();
  part.memory.reset();  // before the new rows need memory
  LOCKSTEP_ASSIGN_OR_RETURN(part.memory, devices_.of(tower)->Allocate(bytes));
  part.bytes = bytes;
  return absl::OkStatus();
}

absl::Status TowerData::Load(const LoadPlan& plan, std::span<const TensorView> inputs,
                             std::span<const TensorView> state_inputs) {
  for (Part& part : parts_) part.arrays.clear();
  absl::Status loaded;
  for (size_t tower = 0; tower < parts_.size() && loaded.ok(); ++tower) {
    loaded = LoadPart(tower, plan, inputs, state_inputs);
  }
  for (const DeviceQueue& queue : queues_) loaded.Update(queue.Finish());
  if (loaded.ok()) return loaded;
  for (Part& part : parts_) part = Part();
  return loaded;
}

absl::Status TowerData::LoadPart(size_t tower, const LoadPlan& plan,
                                 std::span<const TensorView> inputs,
                                 std::span<const TensorView> state_inputs) {
  Part& part = parts_[tower];
  const auto add = [&part](std::span<const TensorView> arrays, const RowSpan& rows) {
    for (const TensorView& array : arrays) {
      part.arrays.push_back(RowRange(array, rows.begin, rows.count));
    }
  };
  add(inputs, plan.RowsOf(static_cast<int64_t>(tower)));
  add(state_inputs, plan.StateRowsOf(static_cast<int64_t>(tower)));
  for (const TensorView& array : part.arrays) bytes_to_towers_ += array.num_bytes();
  if (devices_.is_host()) return absl::OkStatus();
  return Annotate(CopyToDevice(tower, &part), LoadOf(tower));
}

absl::Status TowerData::CopyToDevice(size_t tower, Part* part) {
  size_t bytes = 0;
  for (const TensorView& array : part->arrays) bytes += Tensor::RoomFor(array.num_bytes());
  LOCKSTEP_RETURN_IF_ERROR(MakeRoom(tower, bytes));
  Stream* const stream = queues_[devices_.index_of(tower)].stream();
  std::byte* to = part->memory.get();
  for (TensorView& array : part->arrays) {
    stream->CopyToDevice(to, array.data, array.num_bytes());
    array.data = to;
    to += Tensor::RoomFor(array.num_bytes());
  }
  return absl::OkStatus();
}

TensorView TowerData::Rows(int64_t tower, size_t array, const RowSpan& rows) const {
  return RowRange(parts_[tower].arrays[array], rows.begin, rows.count);
}

}  // namespace lockstep::worker
