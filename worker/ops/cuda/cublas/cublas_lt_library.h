// cuBLASLt, opened at run time.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "worker/device/cuda/launch_lock.h"
#include "worker/ops/cuda/cublas/cublas_lt_api.h"

namespace lockstep::worker::cuda {

// Immutable, thread-safe.
class CublasLtLibrary {
 public:
  // The library stays open until the process ends. FAILED_PRECONDITION, with the remedy: there is
  // none, or it is too old.
  static absl::StatusOr<CublasLtLibrary> Open(const std::string& library);

  explicit CublasLtLibrary(const CublasLtFunctions& functions) : functions_(functions) {}

  // OK, or "<call>: <name of the error>": UNIMPLEMENTED where cuBLASLt says that it does not
  // support what was asked, else INTERNAL with the exit code of a device that has failed.
  absl::Status ToStatus(CublasStatus status, absl::string_view call) const;

  LockedCalls<CublasLtFunctions> operator->() const {
    return LockedCalls<CublasLtFunctions>(&functions_);
  }

 private:
  CublasLtFunctions functions_;
};

// That of the toolkit's major version, opened by the first call; stays until the process ends.
absl::StatusOr<const CublasLtLibrary*> SharedCublasLt();

// Makes SharedCublasLt return this one, until it is told null. Called while no other thread asks.
void SetCublasLtForTesting(const CublasLtLibrary* library);

}  // namespace lockstep::worker::cuda
