// The device that a suite of tests runs on: the CPU, or what the environment variable
// kTestDeviceVariable says: "deferred", "cuda" (a GPU over the fake driver) or "gpu" (this
// machine's first). device_tests of device_tests.bzl runs a suite once on each.
#pragma once

#include <cstdint>
#include <memory>

#include "worker/device/device.h"
#include "worker/ops/op_table.h"

namespace lockstep::test {

inline constexpr char kTestDeviceVariable[] = "LOCKSTEP_TEST_DEVICE";

// `threads`: of each op on the CPU. `seed`: of the order of work that is deferred.
std::shared_ptr<worker::Device> MakeTestDevice(int threads, uint64_t seed = 1);
const worker::OpTable& OpsOfTestDevice();

}  // namespace lockstep::test
