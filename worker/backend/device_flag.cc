#include "worker/backend/device_flag.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "common/base/exit_code.h"
#include "common/base/status_macros.h"
#include "worker/backend/device_choice.h"
#include "worker/device/cuda/driver.h"

ABSL_FLAG(
    std::string, device, "auto",
    "where it computes: cpu, cuda (all GPUs), cuda:N, several of these (cuda:0,cuda:1), or auto "
    "(the GPUs that can be used, else the CPU)");

ABSL_FLAG(double, gpu_memory_limit, 0,
          "GiB of each GPU that towers, their batches and workspaces may take; 0: all that it has");

ABSL_FLAG(bool, autotune, false,
          "on a GPU, time cuDNN's engines for each convolution and take the fastest, not the one "
          "that it names first: the last bits may then differ from run to run");

namespace lockstep::worker {
namespace {

absl::StatusOr<uint64_t> MemoryLimit() {
  constexpr double kGiB = 1 << 30;
  constexpr int kMost = 1 << 20;
  const double limit = absl::GetFlag(FLAGS_gpu_memory_limit);
  if (limit == 0) return 0;
  if (limit > 0 && limit <= kMost)
    return std::max(uint64_t{1}, static_cast<uint64_t>(limit * kGiB));
  return UsageError(absl::StrCat("--gpu_memory_limit: expected GiB, 0 to ", kMost, ", got ", limit,
                                 ". Remedy: leave it out for all that the GPU has"));
}

}  // namespace

absl::StatusOr<Backend> BackendOfFlag() {
  LOCKSTEP_ASSIGN_OR_RETURN(DeviceChoice choice, ParseDeviceChoice(absl::GetFlag(FLAGS_device)));
  LOCKSTEP_ASSIGN_OR_RETURN(choice.options.memory_limit, MemoryLimit());
  choice.options.autotune = absl::GetFlag(FLAGS_autotune);
  if (choice.kind == DeviceChoice::Kind::kCpu) return Backend();
  return Backend::Open(choice, cuda::SharedDriver());
}

}  // namespace lockstep::worker
