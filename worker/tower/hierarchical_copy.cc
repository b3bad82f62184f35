#include "worker/tower/hierarchical_copy.h"

#include <utility>

#include "common/base/annotate.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace lockstep::worker {

absl::StatusOr<std::unique_ptr<HierarchicalCopy>> HierarchicalCopy::Create(
    const TowerDevices& devices, const OpTable& ops) {
  LOCKSTEP_CHECK(devices.size() > 1);
  std::unique_ptr<HierarchicalCopy> made(new HierarchicalCopy(devices));
  LOCKSTEP_RETURN_IF_ERROR(made->Prepare(ops));
  return made;
}

absl::Status HierarchicalCopy::Prepare(const OpTable& ops) {
  const size_t second = SecondMain(devices_.size());
  sums_[0].main = 0;
  for (size_t device = 1; device < second; ++device) sums_[0].others.push_back(device);
  sums_[1].main = second;
  for (size_t device = second + 1; device < devices_.size(); ++device) {
    sums_[1].others.push_back(device);
  }
  sums_[2].main = 0;
  sums_[2].others.push_back(second);
  for (size_t sum = 0; sum < kSums; ++sum) {
    Device* const main = devices_.of(sums_[sum].main);
    main->MakeCurrent();
    LOCKSTEP_ASSIGN_OR_RETURN(contexts_[sum], ops.CreateContext(main));
    LOCKSTEP_ASSIGN_OR_RETURN(ops_[sum], ops.Make(contexts_[sum].get(), MeanOptions{.count = 1}));
  }
  for (size_t device = 0; device < devices_.size(); ++device) {
    LOCKSTEP_ASSIGN_OR_RETURN(there_.emplace_back(), devices_.of(device)->CreateEvent());
  }
  return absl::OkStatus();
}

absl::Status HierarchicalCopy::Reserve(size_t bytes) {
  if (bytes <= reserved_) return absl::OkStatus();
  reserved_ = 0;
  for (Sum& sum : sums_) {
    sum.copies.clear();
    for (size_t i = 0; i < sum.others.size(); ++i) {
      absl::StatusOr<DeviceBuffer> copy = devices_.of(sum.main)->Allocate(bytes);
      if (!copy.ok()) return Annotate(copy.status(), "copies of other GPUs' gradients");
      sum.copies.push_back(*std::move(copy));
    }
  }
  reserved_ = bytes;
  return absl::OkStatus();
}

absl::Status HierarchicalCopy::ReduceToFirst(std::span<const MutableTensorView> by_device,
                                             std::span<Stream* const> streams) {
  LOCKSTEP_CHECK(by_device[0].num_bytes() <= reserved_);
  std::array<Call, kSums>& calls = calls_[by_device[0].data];
  for (size_t device = 0; device < there_.size(); ++device) {
    streams[device]->Record(there_[device].get());
  }
  for (size_t sum = 0; sum < kSums; ++sum) {
    LOCKSTEP_RETURN_IF_ERROR(Add(sum, by_device, streams, &calls[sum]));
  }
  return absl::OkStatus();
}

absl::Status HierarchicalCopy::Add(size_t sum, std::span<const MutableTensorView> by_device,
                                   std::span<Stream* const> streams, Call* call) {
  const auto& [main, others, copies] = sums_[sum];
  if (others.empty()) return absl::OkStatus();
  Stream* const stream = streams[main];
  call->to = by_device[main];
  call->terms.assign(1, call->to);
  for (size_t i = 0; i < others.size(); ++i) {
    const MutableTensorView& from = by_device[others[i]];
    stream->WaitFor(there_[others[i]].get());
    stream->CopyFromPeer(copies[i].get(), from.data, from.num_bytes());
    call->terms.push_back({from.dtype, from.shape, copies[i].get()});
  }
  call->args = {call->terms, {&call->to, 1}};
  LOCKSTEP_RETURN_IF_ERROR(ops_[sum]->Run(call->args, stream));
  stream->Record(there_[main].get());
  return absl::OkStatus();
}

absl::Status HierarchicalCopy::Await(std::span<Event* const> by_device) {
  for (size_t device = by_device.size(); device > 0; --device) {
    LOCKSTEP_RETURN_IF_ERROR(by_device[device - 1]->Wait());
  }
  return absl::OkStatus();
}

}  // namespace lockstep::worker
