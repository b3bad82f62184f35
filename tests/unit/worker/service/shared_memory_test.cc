// What a worker shares with the ps of its host, on a CPU and on a GPU.
#include "worker/service/shared_memory.h"

#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/cuda/fake_gpu.h"
#include "tests/support/log_lines.h"
#include "worker/device/cpu/cpu_device.h"

namespace lockstep::worker {
namespace {

constexpr uint64_t kBytes = 4096;

JobDef JobWith(TransportDef::SharedMemory shared) {
  JobDef job;
  job.mutable_transport()->set_shared_memory(shared);
  return job;
}

TEST_CASE("towers read values in a ps's memory where the job says so, and on a GPU by default") {
  const auto cpu = std::make_shared<CpuDevice>(1);
  CHECK_FALSE(SharedMemory(JobWith(TransportDef::COPY), cpu, 0).values_in_place());
  CHECK(SharedMemory(JobWith(TransportDef::MAP), cpu, 0).values_in_place());
  CHECK_FALSE(SharedMemory(JobWith(TransportDef::OFF), cpu, 0).values_in_place());
  const auto gpu = test::MakeFakeGpu(1);
  CHECK(SharedMemory(JobWith(TransportDef::COPY), gpu, 0).values_in_place());
  CHECK(SharedMemory(JobWith(TransportDef::MAP), gpu, 0).values_in_place());
  CHECK_FALSE(SharedMemory(JobWith(TransportDef::OFF), gpu, 0).values_in_place());
}

TEST_CASE("gradients have memory that can be shared, or that a GPU copies to") {
  const auto cpu = std::make_shared<CpuDevice>(1);
  CHECK(SharedMemory(JobWith(TransportDef::COPY), cpu, kBytes).gradients() != nullptr);
  CHECK(SharedMemory(JobWith(TransportDef::COPY), cpu, 0).gradients() == nullptr);
  CHECK(SharedMemory(JobWith(TransportDef::OFF), cpu, kBytes).gradients() == nullptr);
  const auto gpu = test::MakeFakeGpu(1);
  const size_t before = test::FakeDriver::Current().live();
  {
    const SharedMemory memory(JobWith(TransportDef::OFF), gpu, kBytes);
    CHECK(memory.gradients() != nullptr);
    CHECK(test::FakeDriver::Current().live() == before + 1);  // the registration
  }
  CHECK(test::FakeDriver::Current().live() == before);
}

TEST_CASE("memory that a GPU cannot register is used all the same") {
  const auto gpu = test::MakeFakeGpu(1);
  test::FakeDriver::Current().FailCall(1, test::kErrorNotFound);  // after cuCtxSetCurrent
  const SharedMemory memory(JobWith(TransportDef::COPY), gpu, kBytes);
  CHECK(test::FakeDriver::Current().failed_call() == "cuMemHostRegister");
  CHECK(memory.gradients() != nullptr);
  CHECK(gpu->status().ok());
}

TEST_CASE("memory that a GPU cannot register is told of with what it costs and the reason") {
  const auto gpu = test::MakeFakeGpu(1);
  test::FakeDriver::Current().FailCall(1, test::kErrorNotFound);
  const std::vector<std::string> lines =
      test::LogLines([&] { SharedMemory(JobWith(TransportDef::COPY), gpu, kBytes); });
  REQUIRE(lines.size() == 1);
  CHECK_THAT(lines[0], Catch::Contains(
                           "memory of gradients is not registered, cuda:0 copies at a fraction of "
                           "the speed, through its driver's buffers: cuda:0: cuMemHostRegister "
                           "of 4096 bytes: ") &&
                           Catch::Contains(". Remedy: "));
}

}  // namespace
}  // namespace lockstep::worker
