// The host's own processor, used by a fixed number of OpenMP threads.
#pragma once

#include <string>

#include "worker/device/device.h"

namespace lockstep::worker {

class CpuDevice : public Device {
 public:
  // `threads` >= 1: of each op, the calling one included. Every thread that calls ops has a team of
  // its own, so D towers use D * threads.
  explicit CpuDevice(int threads);

  int threads() const { return threads_; }

  std::string name() const override;
  void MakeCurrent() const override;
  absl::StatusOr<DeviceMemory> Allocate(size_t bytes) const override;

 private:
  const int threads_;
};

}  // namespace lockstep::worker
