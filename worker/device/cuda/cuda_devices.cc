#include "worker/device/cuda/cuda_devices.h"

#ifdef LOCKSTEP_HAVE_CUDA
#include <cuda_runtime_api.h>
#endif

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace lockstep::worker {

#ifdef LOCKSTEP_HAVE_CUDA
CudaReport FindCudaDevices() {
  CudaReport report;
  report.toolkit = CUDART_VERSION;
  int count = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess) {
    report.problem = cudaGetErrorString(error);
    return report;
  }
  for (int i = 0; i < count; ++i) {
    cudaDeviceProp properties;
    if (cudaGetDeviceProperties(&properties, i) != cudaSuccess) continue;
    report.devices.push_back(absl::StrFormat(
        "%s, %d GiB, compute capability %d.%d", properties.name,
        static_cast<int>(properties.totalGlobalMem >> 30), properties.major, properties.minor));
  }
  return report;
}
#else
CudaReport FindCudaDevices() { return {}; }
#endif

std::string Describe(const CudaReport& report) {
  if (report.toolkit == 0) return "built without CUDA";
  const std::string version =
      absl::StrCat("CUDA ", report.toolkit / 1000, ".", report.toolkit % 1000 / 10, ": ");
  if (!report.devices.empty()) return version + absl::StrJoin(report.devices, "; ");
  return absl::StrCat(version, "no device",
                      report.problem.empty() ? "" : absl::StrCat(" (", report.problem, ")"));
}

}  // namespace lockstep::worker
