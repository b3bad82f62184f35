// Drivers that are missing, old, broken or without a device, and ones that can be used.
#include "worker/device/cuda/driver.h"

#include <catch2/catch.hpp>
#include <string>

namespace lockstep::worker::cuda {
namespace {

constexpr int kVersion = 13000;

// What the driver of a machine with two GPUs answers.
DriverFunctions GoodFunctions() {
  DriverFunctions functions;
  functions.DriverGetVersion = [](int* version) {
    *version = kVersion;
    return kSuccess;
  };
  functions.Init = [](unsigned int) { return kSuccess; };
  functions.DeviceGetCount = [](int* count) {
    *count = 2;
    return kSuccess;
  };
  functions.GetErrorName = [](CUresult, const char** name) {
    *name = "CUDA_ERROR_NAME";
    return kSuccess;
  };
  functions.GetErrorString = [](CUresult, const char** text) {
    *text = "what it means";
    return kSuccess;
  };
  return functions;
}

// Why the driver is refused.
std::string Refusal(const DriverFunctions& functions, int least_version = kVersion) {
  const auto driver = Driver::Create(functions, least_version);
  CHECK(absl::IsFailedPrecondition(driver.status()));
  return std::string(driver.status().message());
}

TEST_CASE("a driver with devices says what it supports and how many there are") {
  const auto driver = Driver::Create(GoodFunctions(), 12000);
  REQUIRE(driver.ok());
  CHECK((*driver)->version() == kVersion);
  CHECK((*driver)->device_count() == 2);
}

TEST_CASE("a machine without a driver is told what to install") {
  const auto driver = Driver::Open("libno_such_driver.so.1", kVersion);
  CHECK(absl::IsFailedPrecondition(driver.status()));
  const std::string message(driver.status().message());
  CHECK_THAT(message, Catch::Contains("no CUDA driver: libno_such_driver.so.1"));
  CHECK_THAT(message, Catch::Contains("Remedy: install NVIDIA's driver"));
}

TEST_CASE("a library that lacks a function is a driver too old, and names the function") {
  const auto driver = Driver::Open("libm.so.6", kVersion);
  CHECK(driver.status() ==
        absl::FailedPreconditionError(
            "the CUDA driver is too old: libm.so.6 has no cuInit. Remedy: install an NVIDIA driver "
            "for CUDA 13.0 or later"));
}

TEST_CASE("a driver for an older CUDA is refused with both versions, also without a device") {
  DriverFunctions functions = GoodFunctions();
  functions.Init = [](unsigned int) { return kErrorNoDevice; };
  CHECK(Refusal(functions, 14020) ==
        "the CUDA driver is too old: it supports CUDA 13.0. Remedy: install an NVIDIA driver for "
        "CUDA 14.2 or later");
}

TEST_CASE("a driver without a device names the call, the error and the remedy") {
  DriverFunctions functions = GoodFunctions();
  functions.Init = [](unsigned int) { return kErrorNoDevice; };
  CHECK(Refusal(functions) ==
        "no CUDA device: cuInit: CUDA_ERROR_NAME (what it means). Remedy: see whether nvidia-smi "
        "lists a GPU, and what CUDA_VISIBLE_DEVICES and the container leave of them");

  functions = GoodFunctions();
  functions.DeviceGetCount = [](int* count) {
    *count = 0;
    return kSuccess;
  };
  CHECK_THAT(Refusal(functions), Catch::Contains("cuDeviceGetCount: CUDA_ERROR_NAME"));
}

TEST_CASE("each way in which a driver cannot start has a remedy of its own") {
  DriverFunctions functions = GoodFunctions();
  functions.Init = [](unsigned int) { return kErrorStubLibrary; };
  CHECK_THAT(Refusal(functions), Catch::Contains("Remedy: take the toolkit's folder of stubs"));
  functions.Init = [](unsigned int) { return kErrorSystemDriverMismatch; };
  CHECK_THAT(Refusal(functions), Catch::Contains("Remedy: restart the machine"));
}

TEST_CASE("an error of the driver becomes a status that names the call") {
  const auto driver = Driver::Create(GoodFunctions(), kVersion);
  REQUIRE(driver.ok());
  CHECK((*driver)->ToStatus(kSuccess, "cuMemAlloc").ok());
  CHECK((*driver)->ToStatus(700, "cuMemcpy") ==
        absl::InternalError("cuMemcpy: CUDA_ERROR_NAME (what it means)"));
  CHECK(absl::IsResourceExhausted((*driver)->ToStatus(kErrorOutOfMemory, "cuMemAlloc of 8 bytes")));
}

TEST_CASE("an error that the driver has no name for keeps its number") {
  DriverFunctions functions = GoodFunctions();
  functions.GetErrorName = [](CUresult, const char**) { return 1; };
  auto driver = Driver::Create(functions, kVersion);
  REQUIRE(driver.ok());
  CHECK((*driver)->ToStatus(12345, "cuCall").message() == "cuCall: error 12345");

  functions = GoodFunctions();
  functions.GetErrorString = [](CUresult, const char**) { return 1; };
  driver = Driver::Create(functions, kVersion);
  REQUIRE(driver.ok());
  CHECK((*driver)->ToStatus(12345, "cuCall").message() == "cuCall: CUDA_ERROR_NAME");
}

TEST_CASE("a build without CUDA says how to get one with it") {
  const auto driver = SharedDriver();
  if (ToolkitVersion() == 0) {
    CHECK_THAT(std::string(driver.status().message()),
               Catch::Contains("built without CUDA. Remedy: ./lockstep build --cuda, or"));
  } else {
    CHECK((driver.ok() || absl::IsFailedPrecondition(driver.status())));
    CHECK(SharedDriver().status() == driver.status());
  }
}

}  // namespace
}  // namespace lockstep::worker::cuda
