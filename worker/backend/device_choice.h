// DeviceChoice is the parsed value of --device.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "worker/device/cuda/cuda_device.h"

namespace lockstep::worker {

struct DeviceChoice {
  enum class Kind {
    kCpu,
    kAuto,  // the GPUs that can be used; the CPU where there is none
    kCuda,
  };
  Kind kind = Kind::kCpu;
  // Of kCuda, among the GPUs that CUDA_VISIBLE_DEVICES leaves. Empty: all of them.
  std::vector<int> ordinals;
  cuda::CudaDeviceOptions options;  // of each GPU
};

// "cpu", "auto", "cuda" (all GPUs), "cuda:N", or several of the last: "cuda:0,cuda:2". Anything
// else, and a GPU twice, is a usage error.
absl::StatusOr<DeviceChoice> ParseDeviceChoice(absl::string_view text);

}  // namespace lockstep::worker
