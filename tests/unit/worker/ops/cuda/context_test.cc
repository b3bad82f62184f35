// What the ops of a tower on a GPU share.
#include <catch2/catch.hpp>
#include <memory>

#include "tests/support/cuda/fake_gpu.h"
#include "worker/ops/cuda/cuda_context.h"

namespace lockstep::worker::cuda {
namespace {

TEST_CASE("a workspace that grows needs no memory for the one before") {
  constexpr size_t kUnit = 1024;
  const auto device = test::MakeFakeGpu(1);
  const auto made = *CudaContext::Create<Precision::kFloat32>(device.get());
  auto* const context = static_cast<CudaContext*>(made.get());
  test::FakeDriver::Current().SetMemory(10 * kUnit);
  REQUIRE(context->ReserveWorkspace(6 * kUnit).ok());
  CHECK(context->ReserveWorkspace(9 * kUnit).ok());
  CHECK(context->workspace() != nullptr);
  CHECK(device->use().memory == 9 * kUnit);
  CHECK(absl::IsResourceExhausted(context->ReserveWorkspace(11 * kUnit)));
  CHECK(context->ReserveWorkspace(kUnit).ok());
  CHECK(context->workspace() != nullptr);
}

}  // namespace
}  // namespace lockstep::worker::cuda
