#include "worker/device/cuda/cuda_devices.h"

#include <catch2/catch.hpp>

namespace lockstep::worker {
namespace {

TEST_CASE("the CUDA line names the toolkit's version and every device") {
  CHECK(Describe({.toolkit = 13000, .devices = {"A, 79 GiB", "B, 8 GiB"}}) ==
        "CUDA 13.0: A, 79 GiB; B, 8 GiB");
  CHECK(Describe({.toolkit = 12040, .problem = "no driver"}) == "CUDA 12.4: no device (no driver)");
  CHECK(Describe({.toolkit = 12040}) == "CUDA 12.4: no device");
  CHECK(Describe({}) == "built without CUDA");
}

TEST_CASE("a machine without a GPU is told apart from a build without CUDA") {
  const CudaReport report = FindCudaDevices();
  if (report.toolkit == 0) {
    CHECK(report.devices.empty());
  } else {
    CHECK(report.devices.empty() == !report.problem.empty());
  }
}

}  // namespace
}  // namespace lockstep::worker
