// NCCL, opened at run time. A worker does without it where it is missing.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "worker/device/cuda/nccl_api.h"

namespace lockstep::worker::cuda {

// Immutable, thread-safe.
class NcclLibrary {
 public:
  static constexpr char kLibrary[] = "libnccl.so.2";

  // The library stays open until the process ends. FAILED_PRECONDITION, with the remedy: there is
  // none, it lacks a function, or it refuses to tell its version.
  static absl::StatusOr<NcclLibrary> Open(const std::string& library);
  // One of these functions.
  static absl::StatusOr<NcclLibrary> Create(const NcclFunctions& functions);

  // OK, or INTERNAL "<call>: <what the result means>: <the library's last words>".
  absl::Status ToStatus(NcclResult result, absl::string_view call) const;

  const NcclFunctions* operator->() const { return &functions_; }
  // "2.28.9".
  std::string version() const;

 private:
  explicit NcclLibrary(const NcclFunctions& functions) : functions_(functions) {}

  NcclFunctions functions_;
  int version_ = 0;  // 22809: 2.28.9
};

// That of this machine, opened by the first call; stays until the process ends. Any thread.
absl::StatusOr<const NcclLibrary*> SharedNccl();

// Makes SharedNccl return this one, until it is told null. Called while no other thread asks.
void SetNcclForTesting(const absl::StatusOr<const NcclLibrary*>* library);

}  // namespace lockstep::worker::cuda
