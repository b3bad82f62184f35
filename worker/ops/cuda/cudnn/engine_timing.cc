#include "worker/ops/cuda/cudnn/engine_timing.h"

#include <algorithm>
#include <memory>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/status_macros.h"
#include "common/log/log.h"
#include "common/tensor/dtype.h"
#include "worker/device/cuda/cuda_stream.h"

namespace lockstep::worker::cuda {
namespace {

// The shortest of some rounds is that which nothing disturbed. A round is long beside the call that
// waits for it.
constexpr int kRounds = 3;
constexpr int kRunsInRound = 5;

struct OperandMemory {
  DeviceBuffer input, filter, output, workspace;

  ConvolutionOperands operands() const {
    return {input.get(), filter.get(), output.get(), workspace.get()};
  }
};

// What it holds does not matter: engines take the same time for all numbers.
absl::StatusOr<OperandMemory> Allocate(CudaDevice* device, const Conv2DOptions& options,
                                       std::span<const Convolution> candidates) {
  const int64_t element = static_cast<int64_t>(SizeOf(options.type));
  int64_t workspace = 0;
  for (const Convolution& candidate : candidates) {
    workspace = std::max(workspace, candidate.workspace_bytes());
  }
  const auto allocate = [&](int64_t bytes) { return device->Allocate(static_cast<size_t>(bytes)); };
  OperandMemory memory;
  LOCKSTEP_ASSIGN_OR_RETURN(memory.input,
                            allocate(options.batch * options.input.num_elements() * element));
  LOCKSTEP_ASSIGN_OR_RETURN(
      memory.filter, allocate(options.output.channels * options.filter().num_elements() * element));
  LOCKSTEP_ASSIGN_OR_RETURN(memory.output,
                            allocate(options.batch * options.output.num_elements() * element));
  LOCKSTEP_ASSIGN_OR_RETURN(memory.workspace, allocate(workspace));
  return memory;
}

}  // namespace

absl::StatusOr<size_t> FindFastest(CudaDevice* device, const Conv2DOptions& options,
                                   std::span<Convolution> candidates, const Clock* clock) {
  const absl::StatusOr<OperandMemory> memory = Allocate(device, options, candidates);
  if (absl::IsResourceExhausted(memory.status())) {
    log::Warning(absl::StrCat("--autotune takes an engine of cuDNN without timing it: ",
                              memory.status().message()));
    return size_t{0};
  }
  LOCKSTEP_RETURN_IF_ERROR(memory.status());
  LOCKSTEP_ASSIGN_OR_RETURN(const std::unique_ptr<Stream> stream, device->CreateStream({}));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::unique_ptr<Event> event, device->CreateEvent());
  const absl::Cleanup leave_stream = [&] { candidates.front().LeaveStream(); };
  const auto time = [&](Convolution* candidate, int runs) -> absl::StatusOr<absl::Duration> {
    const absl::Duration start = clock->Monotonic();
    for (int run = 0; run < runs; ++run) {
      LOCKSTEP_RETURN_IF_ERROR(
          candidate->Enqueue(memory->operands(), static_cast<const CudaStream&>(*stream).get()));
    }
    stream->Record(event.get());
    LOCKSTEP_RETURN_IF_ERROR(event->Wait());
    return clock->Monotonic() - start;
  };
  const auto shortest_round = [&](Convolution* candidate) -> absl::StatusOr<absl::Duration> {
    // The first run loads the engine's code.
    LOCKSTEP_RETURN_IF_ERROR(time(candidate, 1).status());
    absl::Duration least = absl::InfiniteDuration();
    for (int round = 0; round < kRounds; ++round) {
      LOCKSTEP_ASSIGN_OR_RETURN(const absl::Duration took, time(candidate, kRunsInRound));
      least = std::min(least, took);
    }
    return least;
  };
  size_t fastest = 0;
  absl::Duration least = absl::InfiniteDuration();
  for (size_t i = 0; i < candidates.size(); ++i) {
    const absl::StatusOr<absl::Duration> took = shortest_round(&candidates[i]);
    LOCKSTEP_RETURN_IF_ERROR(device->status());
    if (!took.ok()) {
      log::Warning(absl::StrCat(device->name(), ": --autotune passes over engine ",
                                candidates[i].engine(), " of cuDNN: ", took.status().message()));
    } else if (*took < least) {
      least = *took;
      fastest = i;
    }
  }
  return fastest;
}

}  // namespace lockstep::worker::cuda
