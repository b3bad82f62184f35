// What this build and this machine know of CUDA. A worker says it at its start, so that nobody has
// to guess why a GPU is not used.
#pragma once

#include <string>
#include <vector>

namespace lockstep::worker {

struct CudaReport {
  int toolkit = 0;  // CUDA version of the build times 1000 (13000: 13.0); 0: built without CUDA
  std::vector<std::string> devices;  // "NVIDIA H100, 79 GiB, compute capability 9.0"
  std::string problem;               // why there are no devices
};

// Asks the driver. Any thread; slow the first time.
CudaReport FindCudaDevices();

// One line: "CUDA 13.0: NVIDIA H100, ..." or "CUDA 13.0: no device (no driver ...)" or "built
// without CUDA".
std::string Describe(const CudaReport& report);

}  // namespace lockstep::worker
