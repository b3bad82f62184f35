#include "worker/data/prefetch_to_device/device_prefetcher.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/annotate.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "worker/device/pinned_tensor.h"

namespace lockstep::worker {
namespace {

// By device.
std::vector<TensorMaker> PinnedTensorsOf(const TowerDevices& devices) {
  std::vector<TensorMaker> makers;
  for (Device* const device : devices.all()) makers.push_back(PinnedTensors(device));
  return makers;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Pipeline>> DevicePrefetcher::Create(std::unique_ptr<Pipeline> host,
                                                                   const TowerDevices& devices,
                                                                   int64_t ahead) {
  LOCKSTEP_ASSIGN_OR_RETURN(std::vector<DeviceQueue> queues, DeviceQueue::CreateFor(devices));
  LOCKSTEP_ASSIGN_OR_RETURN(std::vector<StepMemory> memory,
                            Allocate(host->AlignedBytes(), devices, queues, ahead + 1));
  return std::unique_ptr<Pipeline>(
      new DevicePrefetcher(std::move(host), std::move(memory), std::move(queues), ahead));
}

absl::StatusOr<std::vector<DevicePrefetcher::StepMemory>> DevicePrefetcher::Allocate(
    std::span<const size_t> bytes, const TowerDevices& devices, std::span<const DeviceQueue> queues,
    int64_t steps) {
  LOCKSTEP_CHECK(!bytes.empty());
  const std::vector<TensorMaker> make_host_tensor = PinnedTensorsOf(devices);
  std::vector<StepMemory> memory(static_cast<size_t>(steps));
  for (StepMemory& step : memory) {
    for (size_t tower = 0; tower < bytes.size(); ++tower) {
      BatchMemory& batch = step.by_tower.emplace_back();
      const size_t device = devices.index_of(tower);
      batch.stream = queues[device].stream();
      batch.host =
          make_host_tensor[device](DType::kUInt8, Shape({static_cast<int64_t>(bytes[tower])}));
      absl::StatusOr<DeviceBuffer> of_device = devices.of(tower)->Allocate(bytes[tower]);
      if (!of_device.ok()) {
        return Annotate(of_device.status(),
                        absl::StrCat("batches that are copied ahead, ", steps, " of ", bytes[tower],
                                     " bytes for each tower"));
      }
      batch.device = *std::move(of_device);
    }
  }
  return memory;
}

DevicePrefetcher::DevicePrefetcher(std::unique_ptr<Pipeline> host, std::vector<StepMemory> memory,
                                   std::vector<DeviceQueue> queues, int64_t ahead)
    : host_(std::move(host)),
      memory_(std::move(memory)),
      queues_(std::move(queues)),
      prefetcher_(
          ahead, host_->last_step(), [] { return std::vector<Batch>(); },
          [this](int64_t step, std::vector<Batch>* batches) {
            const absl::Status loaded = Load(step, batches);
            absl::MutexLock lock(&mutex_);
            status_.Update(loaded);
          }) {}

absl::Status DevicePrefetcher::status() const {
  absl::MutexLock lock(&mutex_);
  return status_;
}

absl::StatusOr<const std::vector<Batch>*> DevicePrefetcher::BatchesFor(GlobalStep step) {
  if (step.value() < 0 || step.value() > last_step()) {
    return absl::InvalidArgumentError(
        absl::StrCat("step: expected 0 to ", last_step(), ", got ", step.value()));
  }
  const std::vector<Batch>* const batches = prefetcher_.Get(step.value());
  LOCKSTEP_RETURN_IF_ERROR(status());
  return batches;
}

absl::Status DevicePrefetcher::Load(int64_t step, std::vector<Batch>* batches) {
  LOCKSTEP_RETURN_IF_ERROR(status());
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<Batch>* const from,
                            host_->BatchesFor(GlobalStep(step)));
  StepMemory* const memory = MemoryFor(batches);
  LOCKSTEP_CHECK(from->size() == memory->by_tower.size());
  batches->resize(from->size());
  for (size_t tower = 0; tower < from->size(); ++tower) {
    LoadBatch((*from)[tower], &memory->by_tower[tower], &(*batches)[tower]);
  }
  absl::Status status;
  for (const DeviceQueue& queue : queues_) status.Update(queue.Finish());
  return status;
}

DevicePrefetcher::StepMemory* DevicePrefetcher::MemoryFor(const std::vector<Batch>* batches) {
  auto found = std::ranges::find(memory_, batches, &StepMemory::batches);
  if (found == memory_.end()) found = std::ranges::find(memory_, nullptr, &StepMemory::batches);
  LOCKSTEP_CHECK(found != memory_.end());
  found->batches = batches;
  return &*found;
}

void DevicePrefetcher::LoadBatch(const Batch& from, BatchMemory* memory, Batch* to) {
  LOCKSTEP_CHECK(!from.loaded.has_value());
  if (!to->loaded.has_value()) to->loaded.emplace();
  LoadedRows& rows = *to->loaded;
  TensorView on_host;
  memory->used = 0;
  rows.features = CopyToDevice(from.features, memory, &rows.host_features);
  rows.labels = CopyToDevice(from.labels, memory, &on_host);
  rows.state_inputs.resize(from.states.size());
  for (size_t state = 0; state < from.states.size(); ++state) {
    rows.state_inputs[state] = CopyToDevice(from.states[state], memory, &on_host);
  }
  to->examples = from.examples;
  rows.examples = to->examples;
}

TensorView DevicePrefetcher::CopyToDevice(const Tensor& from, BatchMemory* memory,
                                          TensorView* on_host) {
  const size_t bytes = from.num_bytes();
  // All batches of a pipeline are of one size.
  LOCKSTEP_CHECK(memory->used + Tensor::RoomFor(bytes) <= memory->host.num_bytes());
  std::byte* const here = memory->host.view().bytes().data() + memory->used;
  std::byte* const there = memory->device.get() + memory->used;
  memory->used += Tensor::RoomFor(bytes);
  *on_host = {from.dtype(), from.shape(), here};
  if (bytes > 0) {
    std::memcpy(here, from.data(), bytes);
    memory->stream->CopyToDevice(there, here, bytes);
  }
  return {from.dtype(), from.shape(), there};
}

}  // namespace lockstep::worker
