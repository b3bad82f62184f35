// cuDNN, opened at run time.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "worker/device/cuda/launch_lock.h"
#include "worker/ops/cuda/cudnn/cudnn_api.h"

namespace lockstep::worker::cuda {

// Immutable, thread-safe.
class CudnnLibrary {
 public:
  static constexpr char kLibrary[] = "libcudnn.so.9";

  // The library stays open until the process ends. FAILED_PRECONDITION, with the remedy: there is
  // none, or it is too old.
  static absl::StatusOr<CudnnLibrary> Open(const std::string& library);
  // Of these functions. FAILED_PRECONDITION, with the remedy: they are too old.
  static absl::StatusOr<CudnnLibrary> Create(const CudnnFunctions& functions);

  explicit CudnnLibrary(const CudnnFunctions& functions) : functions_(functions) {}

  // OK, or "<call>: <name of the error> (<what cuDNN says>)", of the calling thread's last call:
  // UNIMPLEMENTED where cuDNN does not support what was asked, or cannot compile it, else INTERNAL
  // with the exit code of a device that has failed.
  absl::Status ToStatus(CudnnStatus status, absl::string_view call) const;

  LockedCalls<CudnnFunctions> operator->() const {
    return LockedCalls<CudnnFunctions>(&functions_);
  }

 private:
  CudnnFunctions functions_;
};

// Opened by the first call; stays until the process ends.
absl::StatusOr<const CudnnLibrary*> SharedCudnn();

// Makes SharedCudnn return this one, until it is told null. Called while no other thread asks.
void SetCudnnForTesting(const CudnnLibrary* library);

}  // namespace lockstep::worker::cuda
