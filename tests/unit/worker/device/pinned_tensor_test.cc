// Tensors of the host from which a device copies directly.
#include "worker/device/pinned_tensor.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tests/support/cuda/fake_gpu.h"
#include "tests/support/log_lines.h"
#include "worker/device/cpu/cpu_device.h"

namespace lockstep::worker {
namespace {

TEST_CASE("a tensor for a GPU is pinned for as long as it is there") {
  const auto gpu = test::MakeFakeGpu(1);
  const size_t before = test::FakeDriver::Current().live();
  {
    const Tensor tensor = PinnedTensors(gpu.get())(DType::kFloat32, Shape({3, 5}));
    CHECK(tensor.num_bytes() == 60);
    CHECK(tensor.is_borrowed());
    CHECK(test::FakeDriver::Current().live() == before + 1);
  }
  CHECK(test::FakeDriver::Current().live() == before);
}

TEST_CASE("a tensor is on the heap for a CPU, and where no memory can be pinned") {
  CpuDevice cpu(1);
  CHECK_FALSE(PinnedTensors(&cpu)(DType::kFloat32, Shape({3})).is_borrowed());
  const auto gpu = test::MakeFakeGpu(1);
  test::FakeDriver::Current().FailCall(1, worker::cuda::kErrorOutOfMemory);
  CHECK_FALSE(PinnedTensors(gpu.get())(DType::kInt32, Shape({3})).is_borrowed());
  CHECK(gpu->status().ok());
}

TEST_CASE("memory that cannot be pinned is told of once, with the reason") {
  const auto gpu = test::MakeFakeGpu(1);
  const TensorMaker make = PinnedTensors(gpu.get());
  const TensorMaker copy = make;
  const std::vector<std::string> lines = test::LogLines([&] {
    for (const TensorMaker* const maker : {&make, &copy, &make}) {
      test::FakeDriver::Current().FailCall(1, worker::cuda::kErrorOutOfMemory);
      CHECK_FALSE((*maker)(DType::kInt32, Shape({3})).is_borrowed());
    }
  });
  REQUIRE(lines.size() == 1);
  CHECK_THAT(lines[0], Catch::Contains("host memory cannot be pinned, cuda:0 copies at a fraction "
                                       "of the speed: cuda:0: the host cannot pin 12 bytes: ") &&
                           Catch::Contains(". Remedy: "));
}

}  // namespace
}  // namespace lockstep::worker
