// Sums over GPUs by NCCL.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "worker/device/communicator.h"
#include "worker/device/cuda/call_watchdog.h"
#include "worker/device/cuda/cuda_device.h"
#include "worker/device/cuda/nccl_library.h"

namespace lockstep::worker::cuda {

struct NcclOptions {
  // How long the first sum of Create may run. It takes milliseconds once the GPUs are connected.
  absl::Duration first_sum_limit = absl::Seconds(30);
  // Of calls that connect the GPUs, also of another thread's calls of CUDA, and of later ones.
  absl::Duration connect_limit = absl::Seconds(60);
  absl::Duration call_limit = absl::Seconds(30);
  // A call of NCCL, or one of CUDA for which the launches of a group wait, has not returned within
  // its limit, and may never do so: names the GPUs, the call and the remedy. Called by another
  // thread. The process has to end: the caller waits, and in a group no other thread may call CUDA.
  // May be null.
  std::function<void(const std::string& what)> on_stuck;
};

// NCCL takes memory of each GPU beside what Allocate gives out. ncclReduce goes around a ring,
// whose order NCCL takes from the links: with two GPUs there is one sum, with more its last bits
// depend on the machine and on NCCL's version.
class NcclCommunicator : public Communicator {
 public:
  // Of at least two GPUs, each once, which outlive it, as `library` does. Takes seconds: NCCL 2.22
  // and later connect the GPUs and take memory only for the first sum, so Create runs one of a
  // single number. INTERNAL naming the call where NCCL refuses, RESOURCE_EXHAUSTED where a GPU has
  // no memory, DEADLINE_EXCEEDED with the remedy where the first sum runs too long; nothing is left
  // behind then.
  static absl::StatusOr<std::unique_ptr<NcclCommunicator>> Create(const NcclLibrary* library,
                                                                  std::vector<CudaDevice*> gpus,
                                                                  NcclOptions options = {});
  // After what was enqueued has run, or Abort.
  ~NcclCommunicator() override;

  std::string name() const override;
  absl::Status Reserve(size_t) override { return absl::OkStatus(); }
  absl::Status ReduceToFirst(std::span<const MutableTensorView> by_device,
                             std::span<Stream* const> streams) override;
  absl::Status Await(std::span<Event* const> by_device) override;
  void Abort(const absl::Status& step) override;

 private:
  NcclCommunicator(const NcclLibrary* library, std::vector<CudaDevice*> gpus, NcclOptions options);

  // Runs the first sum. After an error the communicators have been aborted.
  absl::Status Connect();
  void OnLate(const CallWatchdog::LateCall& call) const;
  // As Await. DEADLINE_EXCEEDED, which is final too, after `limit`.
  absl::Status AwaitFor(std::span<Event* const> by_device, absl::Duration limit);
  // Keeps the first error, and names the GPUs in it.
  absl::Status Fail(const absl::Status& error);
  // What NCCL's own threads have met.
  absl::Status AsyncError() const;
  absl::Status Enqueue(std::span<const MutableTensorView> by_device,
                       std::span<Stream* const> streams) const;
  // "cuda:0,cuda:1".
  std::string names() const;

  const NcclLibrary* const library_;
  const std::vector<CudaDevice*> gpus_;
  const NcclOptions options_;
  absl::Duration group_limit_;
  std::vector<NcclComm> comms_;    // by rank; none after Abort
  absl::Status failure_;           // for good
  mutable CallWatchdog watchdog_;  // last: its thread uses all above
};

}  // namespace lockstep::worker::cuda
