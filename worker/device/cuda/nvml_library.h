// NVML, which comes with NVIDIA's driver, opened at run time. A worker does without it where it is
// missing.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "worker/device/cuda/nvml_api.h"

namespace lockstep::worker::cuda {

// Immutable, thread-safe.
class NvmlLibrary {
 public:
  static constexpr char kLibrary[] = "libnvidia-ml.so.1";

  // Opens the library, which stays open until the process ends, and initialises it. Errors: there
  // is none, it lacks a function, or it refuses.
  static absl::StatusOr<NvmlLibrary> Open(const std::string& library);
  // Initialises one of these functions.
  static absl::StatusOr<NvmlLibrary> Create(const NvmlFunctions& functions);

  // OK, or INTERNAL "<call>: <what NVML says>".
  absl::Status ToStatus(NvmlResult result, absl::string_view call) const;

  const NvmlFunctions* operator->() const { return &functions_; }

 private:
  explicit NvmlLibrary(const NvmlFunctions& functions) : functions_(functions) {}

  NvmlFunctions functions_;
};

// That of this machine, opened by the first call; stays until the process ends. Any thread.
absl::StatusOr<const NvmlLibrary*> SharedNvml();

}  // namespace lockstep::worker::cuda
