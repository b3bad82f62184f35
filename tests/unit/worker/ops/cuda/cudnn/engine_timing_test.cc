// Which engine is found to be the fastest, on a cuDNN and a driver that the host imitates.
#include "worker/ops/cuda/cudnn/engine_timing.h"

#include <catch2/catch.hpp>
#include <memory>
#include <vector>

#include "tests/support/cuda/fake_cudnn.h"
#include "tests/support/cuda/fake_gpu.h"

namespace lockstep::worker::cuda {
namespace {

using test::FakeCudnn;
using test::FakeEngine;

constexpr int64_t kMostWorkspace = 1000;

Conv2DOptions TwoPixels() {
  Conv2DOptions options;
  options.input = {1, 2, 1};
  options.output = {1, 2, 1};
  return options;
}

std::vector<FakeEngine> Taking(const std::vector<int>& microseconds) {
  std::vector<FakeEngine> engines;
  for (const int takes : microseconds) {
    engines.push_back({.workspace = 64, .takes = absl::Microseconds(takes)});
  }
  return engines;
}

struct Gpu {
  // `planning`: gets how many calls of cuDNN were made before the engines were run; may be null.
  absl::StatusOr<size_t> Fastest(FakeCudnn* fake, int64_t* planning = nullptr) const {
    ManualClock clock;
    fake->AdvanceWhenRun(&clock);
    const absl::StatusOr<CudnnHandle> handle =
        CudnnHandle::Create(device.get(), &FakeCudnn::library());
    if (!handle.ok()) return handle.status();
    auto candidates = Convolution::Create(
        *handle, {TwoPixels(), ConvolutionPass::kForward, Precision::kFloat32, kMostWorkspace}, 8);
    if (!candidates.ok()) return candidates.status();
    if (planning != nullptr) *planning = fake->calls();
    return FindFastest(device.get(), TwoPixels(), *candidates, &clock);
  }

  std::shared_ptr<CudaDevice> device = test::MakeFakeGpu(1);
};

TEST_CASE("the fastest engine is found wherever cuDNN names it, of equal ones the first") {
  const Gpu gpu;
  const auto fastest = [&](const std::vector<int>& microseconds) {
    FakeCudnn fake(Taking(microseconds));
    const auto found = gpu.Fastest(&fake);
    REQUIRE(found.ok());
    return *found;
  };
  CHECK(fastest({7}) == 0);
  CHECK(fastest({7, 9, 8}) == 0);
  CHECK(fastest({9, 7, 8}) == 1);
  CHECK(fastest({9, 8, 7}) == 2);
  CHECK(fastest({9, 7, 7}) == 1);
}

TEST_CASE("the engines forget the stream on which they were timed") {
  const Gpu gpu;
  FakeCudnn fake(Taking({3, 2}));
  const CudnnHandle handle = *CudnnHandle::Create(gpu.device.get(), &FakeCudnn::library());
  std::vector<Convolution> candidates = *Convolution::Create(
      handle, {TwoPixels(), ConvolutionPass::kForward, Precision::kFloat32, kMostWorkspace}, 8);
  ManualClock clock;
  SECTION("they run") {}
  SECTION("they do not") { fake.FailRuns(); }
  REQUIRE(FindFastest(gpu.device.get(), TwoPixels(), candidates, &clock).ok());
  CHECK(fake.handles_with_stream() == 0);
}

TEST_CASE("the memory with which engines are timed is freed") {
  const Gpu gpu;
  const uint64_t before = gpu.device->use().memory;
  FakeCudnn fake(Taking({3, 2}));
  REQUIRE(gpu.Fastest(&fake).ok());
  CHECK(gpu.device->use().memory == before);
  CHECK(fake.live() == 0);
}

TEST_CASE("whichever call of cuDNN fails, an engine that runs is chosen and nothing is left") {
  const Gpu gpu;
  int64_t planning = 0;
  int64_t calls = 0;
  {
    FakeCudnn fake(Taking({3, 2}));
    const auto found = gpu.Fastest(&fake, &planning);
    REQUIRE(found.ok());
    CHECK(*found == 1);
    calls = fake.calls();
  }
  int64_t first_chosen = 0;
  for (int64_t n = 0; n < calls; ++n) {
    INFO("call " << n);
    FakeCudnn fake(Taking({3, 2}));
    fake.FailCall(n);
    const auto found = gpu.Fastest(&fake);
    CHECK(fake.live() == 0);
    if (n >= planning) {
      REQUIRE(found.ok());
      first_chosen += *found == 0;
      continue;
    }
    // Where a plan could not be made, the other is.
    if (found.ok()) continue;
    CHECK_THAT(
        std::string(found.status().message()),
        Catch::Contains("CUDNN_STATUS_FAKE (why)") || Catch::Contains("no deterministic engine"));
  }
  // Every call that runs the second engine.
  CHECK(first_chosen == (calls - planning) / 2);
}

TEST_CASE("where no engine runs, or there is no memory to try one, the first is taken") {
  const Gpu gpu;
  FakeCudnn fake(Taking({3, 2}));
  SECTION("no engine runs") { fake.FailRuns(); }
  SECTION("no memory") { test::FakeDriver::Current().SetMemory(16); }
  const auto found = gpu.Fastest(&fake);
  REQUIRE(found.ok());
  CHECK(*found == 0);
  CHECK(gpu.device->status().ok());
}

TEST_CASE("a GPU that fails while engines are timed is the error") {
  const Gpu gpu;
  FakeCudnn fake(Taking({3, 2}));
  fake.FailRuns();
  gpu.device->Fail(test::kErrorLaunchFailed, "cuLaunchKernel");
  CHECK(gpu.Fastest(&fake).status() == gpu.device->status());
}

}  // namespace
}  // namespace lockstep::worker::cuda
