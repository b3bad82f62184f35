// Plans that run, on a cuDNN and a driver that the host imitates. What they compute is checked by
// ops_cuda_test.
#include "worker/ops/cuda/cudnn/convolution.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <string>
#include <thread>
#include <utility>

#include "common/base/exit_code.h"
#include "tests/support/cuda/fake_cudnn.h"
#include "tests/support/cuda/fake_gpu.h"
#include "worker/device/cuda/cuda_stream.h"

namespace lockstep::worker::cuda {
namespace {

using test::FakeCudnn;
using test::FakeEngine;

constexpr int64_t kWorkspace = 48;

// A GPU with memory for a convolution of two pixels by one filter.
struct Gpu {
  Gpu() : device(test::MakeFakeGpu(1)), stream(*device->CreateStream({})) {
    device->MakeCurrent();
    options.input = {1, 2, 1};
    options.output = {1, 2, 1};
    for (DeviceBuffer* const buffer : {&input, &filter, &output, &workspace}) {
      *buffer = *device->Allocate(64);
    }
  }

  absl::StatusOr<Convolution> Make() const {
    absl::StatusOr<CudnnHandle> handle = CudnnHandle::Create(device.get(), &FakeCudnn::library());
    if (!handle.ok()) return handle.status();
    auto convolutions = Convolution::Create(
        *handle, {options, ConvolutionPass::kForward, Precision::kFloat32, kWorkspace});
    if (!convolutions.ok()) return convolutions.status();
    return std::move(convolutions->front());
  }

  ConvolutionOperands operands() const {
    return {reinterpret_cast<float*>(input.get()), reinterpret_cast<float*>(filter.get()),
            reinterpret_cast<float*>(output.get()), workspace.get()};
  }
  CUstream on() const { return static_cast<CudaStream*>(stream.get())->get(); }

  std::shared_ptr<CudaDevice> device;
  std::unique_ptr<Stream> stream;
  Conv2DOptions options;
  DeviceBuffer input, filter, output, workspace;
};

TEST_CASE("a convolution makes nothing of cuDNN anew while its operands stay") {
  const Gpu gpu;
  FakeCudnn fake({FakeEngine{.workspace = kWorkspace}});
  {
    Convolution convolution = *gpu.Make();
    CHECK(convolution.workspace_bytes() == kWorkspace);
    ConvolutionOperands operands = gpu.operands();
    REQUIRE(convolution.Enqueue(operands, gpu.on()).ok());
    const size_t live = fake.live();
    const auto calls_of = [&] {
      const int64_t before = fake.calls();
      REQUIRE(convolution.Enqueue(operands, gpu.on()).ok());
      return fake.calls() - before;
    };
    CHECK(calls_of() == 2);  // the stream, and the work
    std::swap(operands.input, operands.output);
    CHECK(calls_of() > 2);
    CHECK(calls_of() == 2);
    CHECK(fake.live() == live);
  }
  CHECK(fake.live() == 0);
}

TEST_CASE("whichever call of cuDNN fails, the device has failed and nothing is left behind") {
  const Gpu gpu;
  const auto run = [&]() -> absl::Status {
    absl::StatusOr<Convolution> convolution = gpu.Make();
    if (!convolution.ok()) return convolution.status();
    return convolution->Enqueue(gpu.operands(), gpu.on());
  };
  int64_t calls = 0;
  {
    FakeCudnn fake({FakeEngine{}});
    REQUIRE(run().ok());
    calls = fake.calls();
  }
  for (int64_t n = 0; n < calls; ++n) {
    INFO("call " << n);
    FakeCudnn fake({FakeEngine{}});
    fake.FailCall(n);
    const absl::Status failed = run();
    CHECK(fake.live() == 0);
    REQUIRE_FALSE(failed.ok());
    CHECK_THAT(std::string(failed.message()),
               Catch::StartsWith(n == 0 ? "cuda:0: cudnnCreate: " : "cudnn"));
    CHECK(ExitCodeFor(failed) == ExitCode::kDeviceFailed);
  }
}

TEST_CASE("whichever call fails while a convolution is enqueued, the device has failed") {
  const Gpu gpu;
  FakeCudnn fake({FakeEngine{}});
  int64_t calls = 0;
  {
    Convolution convolution = *gpu.Make();
    const int64_t before = fake.calls();
    REQUIRE(convolution.Enqueue(gpu.operands(), gpu.on()).ok());
    calls = fake.calls() - before;
  }
  REQUIRE(calls > 2);  // the operands, the stream, and the work
  for (int64_t n = 0; n < calls; ++n) {
    INFO("call " << n);
    Convolution convolution = *gpu.Make();
    fake.FailCall(n);
    const absl::Status failed = convolution.Enqueue(gpu.operands(), gpu.on());
    REQUIRE_FALSE(failed.ok());
    CHECK(ExitCodeFor(failed) == ExitCode::kDeviceFailed);
  }
}

TEST_CASE("a device on which cuDNN cannot start has failed") {
  const Gpu gpu;
  FakeCudnn fake({FakeEngine{}});
  fake.FailCall(0);
  const absl::Status failed = CudnnHandle::Create(gpu.device.get(), &FakeCudnn::library()).status();
  CHECK_THAT(std::string(failed.message()), Catch::StartsWith("cuda:0: cudnnCreate: "));
  CHECK(ExitCodeFor(failed) == ExitCode::kDeviceFailed);
}

TEST_CASE("a handle that another thread makes and destroys leaves a capture as it is") {
  const Gpu gpu;
  FakeCudnn fake({FakeEngine{}});
  for (int round = 0; round < 20; ++round) {
    std::atomic<bool> has_begun = false;
    std::thread other;
    const auto graph = gpu.stream->Capture([&] {
      other = std::thread([&] {
        has_begun = true;
        CHECK(CudnnHandle::Create(gpu.device.get(), &FakeCudnn::library()).ok());
      });
      while (!has_begun) std::this_thread::yield();
      for (int i = 0; i < 100; ++i) std::this_thread::yield();  // would meet the capture
      return absl::OkStatus();
    });
    other.join();
    CHECK(graph != nullptr);
  }
}

}  // namespace
}  // namespace lockstep::worker::cuda
