// CUDA's driver, opened at run time: one worker program starts with a driver and without.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "worker/device/cuda/driver_api.h"
#include "worker/device/cuda/launch_lock.h"
#include "worker/device/cuda/pinned_memory.h"

namespace lockstep::worker::cuda {

// Thread-safe.
class Driver {
 public:
  static constexpr char kLibrary[] = "libcuda.so.1";

  // Opens the library, which stays open until the process ends, and initialises it as Create does.
  // FAILED_PRECONDITION, with the remedy: there is none, or it is too old for this program.
  static absl::StatusOr<std::unique_ptr<Driver>> Open(const std::string& library,
                                                      int least_version);

  // Initialises a driver of these functions. `least_version`: of CUDA, times 1000 (13000: 13.0).
  // FAILED_PRECONDITION, with the remedy: it is older, or has no device.
  static absl::StatusOr<std::unique_ptr<Driver>> Create(const DriverFunctions& functions,
                                                        int least_version);

  // OK, or "<call>: <name of the error> (<what it means>)" where `call` is "cuMemAlloc of 8 bytes".
  // RESOURCE_EXHAUSTED for memory, INTERNAL for all others.
  absl::Status ToStatus(CUresult result, absl::string_view call) const;

  // A call that does not wait for an event or a stream.
  LockedCalls<DriverFunctions> operator->() const {
    return LockedCalls<DriverFunctions>(&functions_);
  }
  // One that does, without the lock.
  const DriverFunctions& waits() const { return functions_; }
  // Of CUDA that the driver supports, times 1000.
  int version() const { return version_; }
  // Those that CUDA_VISIBLE_DEVICES leaves, at least 1.
  int device_count() const { return device_count_; }
  // By its devices.
  PinnedMemory* pinned_memory() const { return &pinned_memory_; }

 private:
  explicit Driver(const DriverFunctions& functions) : functions_(functions) {}

  std::string Describe(CUresult result) const;
  absl::Status Initialize(int least_version);

  const DriverFunctions functions_;
  int version_ = 0;
  int device_count_ = 0;
  mutable PinnedMemory pinned_memory_;
};

// "13.0" of 13000.
std::string VersionText(int version);

// Version of the toolkit that this program was built with; 0: built without CUDA.
int ToolkitVersion();

// The driver of this machine, opened by the first call, which is slow. Any thread.
// FAILED_PRECONDITION with the remedy where it cannot be used, or where the build has no CUDA.
absl::StatusOr<const Driver*> SharedDriver();

}  // namespace lockstep::worker::cuda
