// Tensors of the host from which a device copies directly.
#include "worker/device/pinned_tensor.h"

#include <catch2/catch.hpp>

#include "tests/support/cuda/fake_gpu.h"
#include "worker/device/cpu/cpu_device.h"

namespace lockstep::worker {
namespace {

TEST_CASE("a tensor for a GPU is pinned for as long as it is there") {
  const auto gpu = test::MakeFakeGpu(1);
  const size_t before = test::FakeDriver::Current().live();
  {
    const Tensor tensor = PinnedTensor(gpu.get(), DType::kFloat32, Shape({3, 5}));
    CHECK(tensor.num_bytes() == 60);
    CHECK(tensor.is_borrowed());
    CHECK(test::FakeDriver::Current().live() == before + 1);
  }
  CHECK(test::FakeDriver::Current().live() == before);
}

TEST_CASE("a tensor is on the heap for a CPU, and where no memory can be pinned") {
  CpuDevice cpu(1);
  CHECK_FALSE(PinnedTensor(&cpu, DType::kFloat32, Shape({3})).is_borrowed());
  const auto gpu = test::MakeFakeGpu(1);
  test::FakeDriver::Current().FailCall(1, worker::cuda::kErrorOutOfMemory);
  CHECK_FALSE(PinnedTensors(gpu.get())(DType::kInt32, Shape({3})).is_borrowed());
  CHECK(gpu->status().ok());
}

}  // namespace
}  // namespace lockstep::worker
