// Our table of the driver's functions against the toolkit's stand-in for the driver's library,
// which has all functions and refuses every call.
#include <catch2/catch.hpp>
#include <string>

#include "worker/device/cuda/driver.h"

namespace lockstep::worker::cuda {
namespace {

TEST_CASE("the toolkit's stub has every function of the table, and is refused with the remedy") {
  const auto driver = Driver::Open("external/local_cuda/libcuda_stub.so", 0);
  CHECK(absl::IsFailedPrecondition(driver.status()));
  CHECK_THAT(std::string(driver.status().message()),
             Catch::Contains("cuDriverGetVersion: error 34. Remedy: take the toolkit's folder"));
}

}  // namespace
}  // namespace lockstep::worker::cuda
