#include "worker/device/cuda/cuda_devices.h"

#include <catch2/catch.hpp>
#include <cstring>

namespace lockstep::worker::cuda {
namespace {

TEST_CASE("the CUDA line names the toolkit's version and every device") {
  CHECK(Describe({.toolkit = 13000, .devices = {"A, 79 GiB", "B, 8 GiB"}}) ==
        "CUDA 13.0: A, 79 GiB; B, 8 GiB");
  CHECK(Describe({.toolkit = 12040, .problem = "no driver"}) == "CUDA 12.4: no device (no driver)");
  CHECK(Describe({}) == "built without CUDA");
}

TEST_CASE("a machine without a GPU is told apart from a build without CUDA") {
  const CudaReport report = FindCudaDevices(absl::FailedPreconditionError("no driver"));
  CHECK(report.toolkit == ToolkitVersion());
  CHECK(report.devices.empty());
  CHECK(report.problem == "no driver");
}

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

TEST_CASE("each device is described, and one that is broken does not hide the others") {
  const auto driver = Driver::Create(TwoDevices(), 0);
  REQUIRE(driver.ok());
  const CudaReport report = FindCudaDevices(driver->get());
  CHECK(report.devices == std::vector<std::string>{"NVIDIA A, 79 GiB, compute capability 9.1",
                                                   "cuda:1: cuDeviceTotalMem: error 999"});
}

}  // namespace
}  // namespace lockstep::worker::cuda
