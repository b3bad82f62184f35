#include "worker/device/cpu/cpu_device.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/tensor/tensor.h"

// Memory that cannot be had is an error here, not the end of the process as sanitizers have it.
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }
extern "C" const char* __tsan_default_options() { return "allocator_may_return_null=1"; }

namespace lockstep::worker {
namespace {

TEST_CASE("memory of the CPU is aligned, and too much of it is an error with a remedy") {
  CpuDevice device(2);
  for (size_t bytes : {0, 1, 63, 64, 1000}) {
    const absl::StatusOr<DeviceBuffer> memory = device.Allocate(bytes);
    REQUIRE(memory.ok());
    CHECK(reinterpret_cast<uintptr_t>(memory->get()) % Tensor::kAlignment == 0);
  }
  const absl::Status failed = device.Allocate(size_t{1} << 62).status();
  CHECK(absl::IsResourceExhausted(failed));
  CHECK_THAT(std::string(failed.message()), Catch::Contains("Remedy: a smaller batch"));
}

TEST_CASE("a device says what it is") { CHECK(CpuDevice(2).name() == "cpu"); }

// What wait_policy_probe prints when it is started in this way.
std::string Probe(const std::string& environment) {
  const std::string command =
      absl::StrCat(environment, " tests/unit/worker/device/wait_policy_probe one 'two three'");
  FILE* const output = popen(command.c_str(), "r");
  REQUIRE(output != nullptr);
  std::string text;
  char buffer[256];
  while (fgets(buffer, sizeof(buffer), output) != nullptr) text += buffer;
  REQUIRE(pclose(output) == 0);
  return text;
}

TEST_CASE("a process makes OpenMP's threads sleep, keeping its name and arguments") {
  CHECK(Probe("env -u OMP_WAIT_POLICY") == "passive wait_policy_pro one|two three|\n");
}

TEST_CASE("a wait policy that the user has set stays") {
  CHECK(Probe("OMP_WAIT_POLICY=active") == "active wait_policy_pro one|two three|\n");
}

}  // namespace
}  // namespace lockstep::worker
