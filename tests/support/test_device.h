// The device that a suite of tests runs on: the CPU, or what the environment variable
// kTestDeviceVariable says: "deferred", "cuda" (a GPU over the fake driver), "gpu" (this
// machine's first), "gpu_tf32", "gpu_bf16" or "cuda_bf16" (the same, with ops in that precision).
// device_tests of device_tests.bzl runs a suite once on each.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "worker/device/device.h"
#include "worker/device/tower_devices.h"
#include "worker/ops/op_table.h"

namespace lockstep::test {

inline constexpr char kTestDeviceVariable[] = "LOCKSTEP_TEST_DEVICE";

// `threads`: of each op on the CPU. `seed`: of the order of work that is deferred.
std::shared_ptr<worker::Device> MakeTestDevice(int threads, uint64_t seed = 1);
// So many, which copy from each other. On the CPU one: it has all towers.
std::vector<std::shared_ptr<worker::Device>> MakeTestDevices(int count, uint64_t seed = 1);
worker::TowerDevices TowersOn(const std::vector<std::shared_ptr<worker::Device>>& devices);
const worker::OpTable& OpsOfTestDevice();
// Of sums of some hundreds of products, by the largest magnitude.
double ToleranceOfTestDevice();

}  // namespace lockstep::test
