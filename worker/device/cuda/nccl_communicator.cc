#include "worker/device/cuda/nccl_communicator.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/annotate.h"
#include "common/base/check.h"
#include "common/base/exit_code.h"
#include "common/base/status_macros.h"
#include "common/log/log.h"
#include "worker/device/cuda/cuda_stream.h"

namespace lockstep::worker::cuda {
namespace {

// Of looks at the events: little beside a step, and nothing that a GPU notices.
constexpr absl::Duration kPollInterval = absl::Microseconds(50);

}  // namespace

absl::StatusOr<std::unique_ptr<NcclCommunicator>> NcclCommunicator::Create(
    const NcclLibrary* library, std::vector<const CudaDevice*> gpus) {
  LOCKSTEP_CHECK(gpus.size() > 1);
  std::vector<int> ordinals;
  for (const CudaDevice* const gpu : gpus) ordinals.push_back(gpu->ordinal());
  std::unique_ptr<NcclCommunicator> made(new NcclCommunicator(library, std::move(gpus)));
  std::vector<NcclComm> comms(ordinals.size());
  LOCKSTEP_RETURN_IF_ERROR(library->ToStatus(
      (*library)->CommInitAll(comms.data(), static_cast<int>(comms.size()), ordinals.data()),
      absl::StrCat(made->names(), ": ncclCommInitAll")));
  made->comms_ = std::move(comms);
  return made;
}

NcclCommunicator::NcclCommunicator(const NcclLibrary* library, std::vector<const CudaDevice*> gpus)
    : library_(library), gpus_(std::move(gpus)) {}

NcclCommunicator::~NcclCommunicator() {
  for (const NcclComm comm : comms_) {
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
  while (true) {
    size_t reached = 0;
    for (Event* const event : by_device) {
      LOCKSTEP_ASSIGN_OR_RETURN(const bool is_reached, static_cast<CudaEvent*>(event)->IsReached());
      reached += is_reached;
    }
    if (reached == by_device.size()) return absl::OkStatus();
    if (const absl::Status error = AsyncError(); !error.ok()) return Fail(error);
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
  status.Update(library_->ToStatus((*library_)->GroupEnd(), "ncclGroupEnd"));
  return status;
}

void NcclCommunicator::Abort(const absl::Status& step) {
  LOCKSTEP_CHECK(!step.ok());
  if (failure_.ok()) {
    failure_ = Annotate(step, absl::StrCat(names(), ": NCCL was aborted, because a step failed"));
  }
  for (const NcclComm comm : std::exchange(comms_, {})) {
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
