// The device that a suite of tests runs on: the CPU, or the deferred device where the environment
// variable LOCKSTEP_TEST_DEVICE is "deferred". BUILD files run a suite once on each.
#pragma once

#include <cstdlib>
#include <memory>

#include "absl/strings/string_view.h"
#include "tests/support/deferred_device.h"
#include "worker/device/cpu/cpu_device.h"

namespace lockstep::test {

inline constexpr char kTestDeviceVariable[] = "LOCKSTEP_TEST_DEVICE";

inline bool IsDeferred() {
  const char* const kind = std::getenv(kTestDeviceVariable);
  return kind != nullptr && absl::string_view(kind) == "deferred";
}

// `threads`: of each op.
inline std::unique_ptr<worker::Device> MakeTestDevice(int threads) {
  if (IsDeferred()) return std::make_unique<DeferredDevice>(threads, /*seed=*/1);
  return std::make_unique<worker::CpuDevice>(threads);
}

}  // namespace lockstep::test
