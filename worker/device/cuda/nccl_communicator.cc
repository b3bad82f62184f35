#include "worker/device/cuda/nccl_communicator.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/annotate.h"
#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/exit_code.h"
#include "common/base/status_macros.h"
#include "common/log/log.h"
#include "worker/device/cuda/cuda_stream.h"
#include "worker/device/cuda/launch_lock.h"

namespace lockstep::worker::cuda {
namespace {

// Of looks at the events: little beside a step, and nothing that a GPU notices.
constexpr absl::Duration kPollInterval = absl::Microseconds(50);

constexpr char kWithoutPeers[] =
    ". Remedy: NCCL_P2P_DISABLE=1, where an IOMMU or PCIe access control breaks copies between "
    "GPUs; NCCL_DEBUG=INFO tells more";

// One number on each GPU, and the stream and event with which it takes part in their sum.
class FirstSum {
 public:
  absl::Status Prepare(std::span<CudaDevice* const> gpus) {
    static constexpr float kZero = 0;
    for (CudaDevice* const gpu : gpus) {
      LOCKSTEP_ASSIGN_OR_RETURN(memory_.emplace_back(), gpu->Allocate(sizeof(kZero)));
      LOCKSTEP_ASSIGN_OR_RETURN(events_.emplace_back(), gpu->CreateEvent());
      LOCKSTEP_ASSIGN_OR_RETURN(streams_.emplace_back(), gpu->CreateStream({}));
      streams_.back()->CopyToDevice(memory_.back().get(), &kZero, sizeof(kZero));
      values_.push_back({DType::kFloat32, Shape({1}), memory_.back().get()});
      stream_pointers_.push_back(streams_.back().get());
      event_pointers_.push_back(events_.back().get());
    }
    return absl::OkStatus();
  }

  std::span<const MutableTensorView> values() const { return values_; }
  std::span<Stream* const> streams() const { return stream_pointers_; }
  // Behind what the streams have got. Returns them by device.
  std::span<Event* const> RecordEvents() {
    for (size_t gpu = 0; gpu < events_.size(); ++gpu) streams_[gpu]->Record(event_pointers_[gpu]);
    return event_pointers_;
  }

 private:
  std::vector<DeviceBuffer> memory_;
  std::vector<std::unique_ptr<Event>> events_;
  std::vector<MutableTensorView> values_;
  std::vector<Stream*> stream_pointers_;
  std::vector<Event*> event_pointers_;
  std::vector<std::unique_ptr<Stream>> streams_;  // last: uses all above
};

}  // namespace

absl::StatusOr<std::unique_ptr<NcclCommunicator>> NcclCommunicator::Create(
    const NcclLibrary* library, std::vector<CudaDevice*> gpus, NcclOptions options) {
  LOCKSTEP_CHECK(gpus.size() > 1);
  std::vector<int> ordinals;
  for (const CudaDevice* const gpu : gpus) ordinals.push_back(gpu->ordinal());
  std::unique_ptr<NcclCommunicator> made(
      new NcclCommunicator(library, std::move(gpus), std::move(options)));
  std::vector<NcclComm> comms(ordinals.size());
  {
    constexpr char kCall[] = "ncclCommInitAll";
    const CallWatchdog::Watch watch(&made->watchdog_, kCall, made->options_.connect_limit);
    LOCKSTEP_RETURN_IF_ERROR(library->ToStatus(
        (*library)->CommInitAll(comms.data(), static_cast<int>(comms.size()), ordinals.data()),
        absl::StrCat(made->names(), ": ", kCall)));
  }
  made->comms_ = std::move(comms);
  LOCKSTEP_RETURN_IF_ERROR(made->Connect());
  made->group_limit_ = made->options_.call_limit;
  return made;
}

NcclCommunicator::NcclCommunicator(const NcclLibrary* library, std::vector<CudaDevice*> gpus,
                                   NcclOptions options)
    : library_(library),
      gpus_(std::move(gpus)),
      options_(std::move(options)),
      group_limit_(options_.connect_limit),
      watchdog_([this](const CallWatchdog::LateCall& call) { OnLate(call); }) {}

void NcclCommunicator::OnLate(const CallWatchdog::LateCall& call) const {
  if (options_.on_stuck == nullptr) return;
  options_.on_stuck(absl::StrCat(names(), ": ", call.name, " has not returned within ",
                                 absl::FormatDuration(call.limit), kWithoutPeers,
                                 "; or cross_tower_ops { reduction_to_one_device {} } in the job, "
                                 "which does without NCCL; see the kernel's log and nvidia-smi for "
                                 "a GPU that is lost"));
}

absl::Status NcclCommunicator::Connect() {
  FirstSum first;
  absl::Status status = first.Prepare(gpus_);
  if (status.ok()) status = ReduceToFirst(first.values(), first.streams());
  if (status.ok()) status = AwaitFor(first.RecordEvents(), options_.first_sum_limit);
  // Before `first` goes: its streams wait for what NCCL has launched.
  if (!status.ok()) Abort(status);
  return status;
}

NcclCommunicator::~NcclCommunicator() {
  for (const NcclComm comm : comms_) {
    const CallWatchdog::Watch watch(&watchdog_, "ncclCommDestroy", options_.call_limit);
    const absl::Status status =
        library_->ToStatus((*library_)->CommDestroy(comm), "ncclCommDestroy");
    if (!status.ok()) log::Warning(absl::StrCat(names(), ": ", status.message()));
  }
}

std::string NcclCommunicator::name() const { return absl::StrCat("NCCL ", library_->version()); }

absl::Status NcclCommunicator::ReduceToFirst(std::span<const MutableTensorView> by_device,
                                             std::span<Stream* const> streams) {
  // One that takes no part would leave the others waiting.
  for (const CudaDevice* const gpu : gpus_) LOCKSTEP_RETURN_IF_ERROR(gpu->status());
  LOCKSTEP_RETURN_IF_ERROR(failure_);
  const absl::Status enqueued = Enqueue(by_device, streams);
  return enqueued.ok() ? enqueued : Fail(enqueued);
}

absl::Status NcclCommunicator::Fail(const absl::Status& error) {
  if (failure_.ok()) {
    failure_ =
        WithExitCode(absl::Status(error.code(), absl::StrCat(names(), ": ", error.message())),
                     ExitCode::kDeviceFailed);
  }
  return failure_;
}

absl::Status NcclCommunicator::Await(std::span<Event* const> by_device) {
  return AwaitFor(by_device, absl::InfiniteDuration());
}

absl::Status NcclCommunicator::AwaitFor(std::span<Event* const> by_device, absl::Duration limit) {
  const absl::Duration begin = Clock::Real()->Monotonic();
  while (true) {
    size_t reached = 0;
    for (Event* const event : by_device) {
      LOCKSTEP_ASSIGN_OR_RETURN(const bool is_reached, static_cast<CudaEvent*>(event)->IsReached());
      reached += is_reached;
    }
    if (reached == by_device.size()) return absl::OkStatus();
    if (const absl::Status error = AsyncError(); !error.ok()) return Fail(error);
    if (Clock::Real()->Monotonic() - begin >= limit) {
      return Fail(absl::DeadlineExceededError(absl::StrCat("ncclReduce: expected a sum within ",
                                                           absl::FormatDuration(limit),
                                                           ", got none", kWithoutPeers)));
    }
    absl::SleepFor(kPollInterval);
  }
}

absl::Status NcclCommunicator::AsyncError() const {
  for (const NcclComm comm : comms_) {
    NcclResult error = kNcclSuccess;
    LOCKSTEP_RETURN_IF_ERROR(
        library_->ToStatus((*library_)->CommGetAsyncError(comm, &error), "ncclCommGetAsyncError"));
    LOCKSTEP_RETURN_IF_ERROR(library_->ToStatus(error, "ncclReduce"));
  }
  return absl::OkStatus();
}

absl::Status NcclCommunicator::Enqueue(std::span<const MutableTensorView> by_device,
                                       std::span<Stream* const> streams) const {
  LOCKSTEP_CHECK(by_device.size() == gpus_.size() && streams.size() == gpus_.size());
  // Another thread's call waits for ever where a kernel waits for a GPU that is lost. Only NVML
  // would tell of that GPU: this thread does not ask the driver before it has the lock. A call that
  // loads code or pins memory may take longer than one of NCCL.
  std::optional<LaunchLock::Exclusive> lock;
  {
    const CallWatchdog::Watch watch(&watchdog_, "a call of CUDA by another thread",
                                    options_.connect_limit);
    lock.emplace();
  }
  LOCKSTEP_RETURN_IF_ERROR(library_->ToStatus((*library_)->GroupStart(), "ncclGroupStart"));
  absl::Status status;
  for (size_t rank = 0; rank < gpus_.size(); ++rank) {
    const MutableTensorView& values = by_device[rank];
    LOCKSTEP_CHECK(values.dtype == DType::kFloat32 &&
                   values.num_bytes() == by_device[0].num_bytes());
    const NcclResult result = (*library_)->Reduce(values.data, rank == 0 ? values.data : nullptr,
                                                  static_cast<size_t>(values.num_elements()),
                                                  kNcclFloat32, kNcclSum, /*root=*/0, comms_[rank],
                                                  static_cast<CudaStream*>(streams[rank])->get());
    if (result == kNcclSuccess) continue;
    status =
        library_->ToStatus(result, absl::StrCat("ncclReduce of ", values.num_bytes(), " bytes"));
    break;
  }
  // Also after an error, which it returns, and with which it launches nothing.
  const CallWatchdog::Watch watch(&watchdog_, "ncclGroupEnd", group_limit_);
  status.Update(library_->ToStatus((*library_)->GroupEnd(), "ncclGroupEnd"));
  return status;
}

void NcclCommunicator::Abort(const absl::Status& step) {
  LOCKSTEP_CHECK(!step.ok());
  if (failure_.ok()) {
    failure_ = Annotate(step, absl::StrCat(names(), ": NCCL was aborted, because a step failed"));
  }
  for (const NcclComm comm : std::exchange(comms_, {})) {
    const CallWatchdog::Watch watch(&watchdog_, "ncclCommAbort", options_.call_limit);
    const absl::Status status = library_->ToStatus((*library_)->CommAbort(comm), "ncclCommAbort");
    if (!status.ok()) log::Warning(absl::StrCat(names(), ": ", status.message()));
  }
}

std::string NcclCommunicator::names() const {
  return absl::StrJoin(gpus_, ",", [](std::string* out, const CudaDevice* gpu) {
    absl::StrAppend(out, gpu->name());
  });
}

}  // namespace lockstep::worker::cuda
