// Sums over GPUs by NCCL.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "worker/device/communicator.h"
#include "worker/device/cuda/cuda_device.h"
#include "worker/device/cuda/nccl_library.h"

namespace lockstep::worker::cuda {

// NCCL takes memory of each GPU beside what Allocate gives out. ncclReduce goes around a ring,
// whose order NCCL takes from the links: with two GPUs there is one sum, with more its last bits
// depend on the machine and on NCCL's version.
class NcclCommunicator : public Communicator {
 public:
  // How long the first sum of Create may run. It takes milliseconds once the GPUs are connected.
  static constexpr absl::Duration kFirstSumLimit = absl::Seconds(30);

  // Of at least two GPUs, each once, which outlive it, as `library` does. Takes seconds: NCCL 2.22
  // and later connect the GPUs and take memory only for the first sum, so Create runs one of a
  // single number. INTERNAL naming the call where NCCL refuses, RESOURCE_EXHAUSTED where a GPU has
  // no memory, DEADLINE_EXCEEDED with the remedy where the first sum runs longer than `limit`;
  // nothing is left behind then. The limit is not one of NCCL's calls themselves, which block while
  // they connect.
  static absl::StatusOr<std::unique_ptr<NcclCommunicator>> Create(
      const NcclLibrary* library, std::vector<CudaDevice*> gpus,
      absl::Duration limit = kFirstSumLimit);
  // After what was enqueued has run, or Abort.
  ~NcclCommunicator() override;

  std::string name() const override;
  absl::Status Reserve(size_t) override { return absl::OkStatus(); }
  absl::Status ReduceToFirst(std::span<const MutableTensorView> by_device,
                             std::span<Stream* const> streams) override;
  absl::Status Await(std::span<Event* const> by_device) override;
  void Abort(const absl::Status& step) override;

 private:
  NcclCommunicator(const NcclLibrary* library, std::vector<CudaDevice*> gpus);

  // Runs the first sum. After an error the communicators have been aborted.
  absl::Status Connect(absl::Duration limit);
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
  std::vector<NcclComm> comms_;  // by rank; none after Abort
  absl::Status failure_;         // for good
};

}  // namespace lockstep::worker::cuda
