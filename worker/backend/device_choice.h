// What --device says.
#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lockstep::worker {

struct DeviceChoice {
  enum class Kind {
    kCpu,
    kAuto,  // the first GPU where there is one that can be used, else the CPU
    kCuda,
  };
  Kind kind = Kind::kCpu;
  int ordinal = 0;  // of kCuda, among the GPUs that CUDA_VISIBLE_DEVICES leaves
};

// "cpu", "auto", "cuda" (the first GPU) or "cuda:N". Anything else is a usage error.
absl::StatusOr<DeviceChoice> ParseDeviceChoice(absl::string_view text);

}  // namespace lockstep::worker
