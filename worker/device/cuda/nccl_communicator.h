// Sums over GPUs by NCCL.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/device/communicator.h"
#include "worker/device/cuda/cuda_device.h"
#include "worker/device/cuda/nccl_library.h"

namespace lockstep::worker::cuda {

// NCCL takes memory of each GPU beside what Allocate gives out. ncclReduce goes around a ring,
// whose order NCCL takes from the links: with two GPUs there is one sum, with more its last bits
// depend on the machine and on NCCL's version.
class NcclCommunicator : public Communicator {
 public:
  // Of at least two GPUs, each once, which outlive it, as `library` does. Takes seconds. INTERNAL
  // naming the call where NCCL refuses; nothing is left behind then.
  static absl::StatusOr<std::unique_ptr<NcclCommunicator>> Create(
      const NcclLibrary* library, std::vector<const CudaDevice*> gpus);
  // After what was enqueued has run, or Abort.
  ~NcclCommunicator() override;

  std::string name() const override;
  absl::Status Reserve(size_t) override { return absl::OkStatus(); }
  absl::Status ReduceToFirst(std::span<const MutableTensorView> by_device,
                             std::span<Stream* const> streams) override;
  absl::Status Await(std::span<Event* const> by_device) override;
  void Abort(const absl::Status& step) override;

 private:
  NcclCommunicator(const NcclLibrary* library, std::vector<const CudaDevice*> gpus);

  // Keeps the first error, and names the GPUs in it.
  absl::Status Fail(const absl::Status& error);
  // What NCCL's own threads have met.
  absl::Status AsyncError() const;
  absl::Status Enqueue(std::span<const MutableTensorView> by_device,
                       std::span<Stream* const> streams) const;
  // "cuda:0,cuda:1".
  std::string names() const;

  const NcclLibrary* const library_;
  const std::vector<const CudaDevice*> gpus_;
  std::vector<NcclComm> comms_;  // by rank; none after Abort
  absl::Status failure_;         // for good
};

}  // namespace lockstep::worker::cuda
