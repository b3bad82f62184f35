// What the ops of a tower on a GPU share.
#include <catch2/catch.hpp>
#include <memory>

#include "tests/support/cuda/fake_cudnn.h"
#include "tests/support/cuda/fake_gpu.h"
#include "tests/support/log_lines.h"
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

TEST_CASE("an op that does without cuDNN's first engine for its workspace is logged once") {
  const auto first = test::MakeFakeGpu(1);
  const test::FakeCudnn cudnn(
      {test::FakeEngine{.workspace = int64_t{3} << 30}, test::FakeEngine{.workspace = 64}});
  Conv2DOptions options;
  options.batch = 2;
  options.input = {4, 4, 3};
  options.output = {4, 4, 5};
  options.window.extent = {1, 1};
  options.window.stride = {1, 1};
  const auto logged = [&](uint64_t memory, const CudaDeviceOptions& limits) {
    test::FakeDriver::Current().SetMemory(memory);
    const auto device = *CudaDevice::Create(&first->driver(), 0, limits);
    const auto made = *CudaContext::Create<Precision::kFloat32>(device.get());
    return test::LogLines([&] {
      for (const ConvolutionPass pass :
           {ConvolutionPass::kForward, ConvolutionPass::kKernelGradient}) {
        CHECK(static_cast<CudaContext*>(made.get())->MakeConvolution(options, pass).ok());
      }
    });
  };
  constexpr uint64_t kGiB = uint64_t{1} << 30;
  const auto small = logged(16 * kGiB, {});
  REQUIRE(small.size() == 1);
  CHECK_THAT(small[0], Catch::Contains("cuda:0: a convolution of 2 images of 4x4x3 to 4x4x5 does "
                                       "without the engine that cuDNN prefers") &&
                           Catch::Contains("needs 3.0 GiB of workspace, more than 640.0 MiB, a "
                                           "32nd of the GPU's memory or of --gpu_memory_limit"));
  const auto large = logged(64 * kGiB, {});
  REQUIRE(large.size() == 1);
  CHECK_THAT(large[0], Catch::Contains("more than 2.0 GiB"));
  CHECK(logged(128 * kGiB, {}).empty());
  const auto limited = logged(128 * kGiB, {.memory_limit = 64 * kGiB});
  REQUIRE(limited.size() == 1);
  CHECK_THAT(limited[0], Catch::Contains("more than 2.0 GiB"));
}

}  // namespace
}  // namespace lockstep::worker::cuda
