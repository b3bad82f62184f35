#include "worker/tower/hierarchical_copy.h"

#include <utility>

#include "absl/strings/str_cat.h"
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
  for (const Sum& sum : sums_) {
    LOCKSTEP_ASSIGN_OR_RETURN(SumOnDevice on_main, SumOnDevice::Create(devices_.of(sum.main), ops));
    on_main_.push_back(std::move(on_main));
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
      if (!copy.ok()) {
        return WithMessage(copy.status(),
                           absl::StrCat("copies of other GPUs' gradients: ",
                                        copy.status().message(), "; or strategy.parameter_server.",
                                        "cross_tower_ops { all_reduce {} }, which needs none "
                                        "where NCCL is installed"));
      }
      sum.copies.push_back(*std::move(copy));
    }
  }
  reserved_ = bytes;
  return absl::OkStatus();
}

absl::Status HierarchicalCopy::ReduceToFirst(std::span<const MutableTensorView> by_device,
                                             std::span<Stream* const> streams) {
  LOCKSTEP_CHECK(by_device[0].num_bytes() <= reserved_);
  Calls& calls = calls_[by_device[0].data];
  for (size_t device = 0; device < there_.size(); ++device) {
    streams[device]->Record(there_[device].get());
  }
  for (size_t sum = 0; sum < kSums; ++sum) {
    LOCKSTEP_RETURN_IF_ERROR(Add(sum, by_device, streams, &calls[sum]));
  }
  return absl::OkStatus();
}

absl::Status HierarchicalCopy::Add(size_t sum, std::span<const MutableTensorView> by_device,
                                   std::span<Stream* const> streams, SumOnDevice::Call* call) {
  const auto& [main, others, copies] = sums_[sum];
  if (others.empty()) return absl::OkStatus();
  Stream* const stream = streams[main];
  call->sum = by_device[main];
  call->terms.assign(1, call->sum);
  for (size_t i = 0; i < others.size(); ++i) {
    const MutableTensorView& from = by_device[others[i]];
    stream->WaitFor(there_[others[i]].get());
    stream->CopyFromPeer(copies[i].get(), from.data, from.num_bytes());
    call->terms.push_back({from.dtype, from.shape, copies[i].get()});
  }
  LOCKSTEP_RETURN_IF_ERROR(on_main_[sum].Enqueue(call, stream));
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
