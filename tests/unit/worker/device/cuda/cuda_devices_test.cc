#include "worker/device/cuda/cuda_devices.h"

#include <catch2/catch.hpp>
#include <cstring>

namespace lockstep::worker::cuda {
namespace {

DriverFunctions TwoDevices() {
  DriverFunctions functions;
  functions.DriverGetVersion = [](int*) { return kSuccess; };
  functions.Init = [](unsigned int) { return kSuccess; };
  functions.DeviceGetCount = [](int* count) {
    *count = 2;
    return kSuccess;
  };
  functions.DeviceGet = [](CUdevice* device, int ordinal) {
    *device = ordinal;
    return kSuccess;
  };
  functions.DeviceGetName = [](char* name, int, CUdevice device) {
    std::strcpy(name, device == 0 ? "NVIDIA A" : "NVIDIA B");
    return kSuccess;
  };
  functions.DeviceTotalMem = [](size_t* bytes, CUdevice device) {
    *bytes = (size_t{80} << 30) - 1;
    return device == 0 ? kSuccess : CUresult{999};
  };
  functions.DeviceGetAttribute = [](int* value, int attribute, CUdevice) {
    *value = attribute == kAttributeComputeCapabilityMajor ? 9 : 1;
    return kSuccess;
  };
  functions.GetErrorName = [](CUresult, const char**) { return 1; };
  return functions;
}

TEST_CASE("a device is described, and one that is broken by its error") {
  const auto driver = Driver::Create(TwoDevices(), 0);
  REQUIRE(driver.ok());
  CHECK(DescribeDevice(**driver, 0) == "NVIDIA A, 79 GiB, compute capability 9.1");
  CHECK(DescribeDevice(**driver, 1) == "cuDeviceTotalMem: error 999");
}

}  // namespace
}  // namespace lockstep::worker::cuda
