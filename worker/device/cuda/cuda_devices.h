// What this build and this machine know of CUDA. A worker says it at its start, so that nobody has
// to guess why a GPU is not used.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/device/cuda/driver.h"

namespace lockstep::worker::cuda {

struct CudaReport {
  int toolkit = 0;                   // ToolkitVersion()
  std::vector<std::string> devices;  // "NVIDIA H100, 79 GiB, compute capability 9.0"
  std::string problem;               // why there are no devices
};

// Asks the driver, or says why there is none. Any thread.
CudaReport FindCudaDevices(const absl::StatusOr<const Driver*>& driver);

// One line: "CUDA 13.0: NVIDIA H100, ..." or "CUDA 13.0: no device (no CUDA driver ...)" or "built
// without CUDA".
std::string Describe(const CudaReport& report);

}  // namespace lockstep::worker::cuda
