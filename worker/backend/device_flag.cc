#include "worker/backend/device_flag.h"

#include <string>

#include "absl/flags/flag.h"
#include "common/base/status_macros.h"
#include "worker/backend/device_choice.h"
#include "worker/device/cuda/driver.h"

ABSL_FLAG(
    std::string, device, "auto",
    "where it computes: cpu, cuda (all GPUs), cuda:N, several of these (cuda:0,cuda:1), or auto "
    "(the GPUs that can be used, else the CPU)");

namespace lockstep::worker {

absl::StatusOr<Backend> BackendOfFlag() {
  LOCKSTEP_ASSIGN_OR_RETURN(const DeviceChoice choice,
                            ParseDeviceChoice(absl::GetFlag(FLAGS_device)));
  if (choice.kind == DeviceChoice::Kind::kCpu) return Backend();
  return Backend::Open(choice, cuda::SharedDriver());
}

}  // namespace lockstep::worker
