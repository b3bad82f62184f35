// The device that a suite of tests runs on: the CPU, or what the environment variable
// LOCKSTEP_TEST_DEVICE says: "deferred" or "cuda", a GPU over the fake driver. BUILD files run a
// suite once on each.
#pragma once

#include <memory>

#include "worker/device/device.h"
#include "worker/ops/op_table.h"

namespace lockstep::test {

inline constexpr char kTestDeviceVariable[] = "LOCKSTEP_TEST_DEVICE";

bool IsDeferred();
bool IsCuda();

// `threads`: of each op on the CPU.
std::shared_ptr<worker::Device> MakeTestDevice(int threads);
const worker::OpTable& OpsOfTestDevice();

}  // namespace lockstep::test
