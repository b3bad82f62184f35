// Copies to a GPU from memory that its driver does not know, over a driver without a GPU.
#include "worker/device/cuda/pinned_ring.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tests/support/cuda/fake_driver.h"
#include "tests/support/log_lines.h"
#include "worker/device/cuda/cuda_device.h"

namespace lockstep::worker::cuda {
namespace {

using test::FakeDriver;

// More than the ring holds at a time, and no whole number of pieces.
constexpr size_t kBytes = (2 * PinnedRing::kPieces + 1) * PinnedRing::kPieceBytes + 3;

std::vector<std::byte> Pattern() {
  std::vector<std::byte> bytes(kBytes);
  uint32_t state = 1;
  for (std::byte& byte : bytes) {
    state = state * 1'664'525 + 1'013'904'223;
    byte = static_cast<std::byte>(state >> 24);
  }
  return bytes;
}

struct Gpu {
  explicit Gpu(uint64_t seed) : fake(seed) {}

  FakeDriver fake;
  std::unique_ptr<Driver> driver = *Driver::Create(FakeDriver::functions(), 0);
  std::unique_ptr<CudaDevice> device = *CudaDevice::Create(driver.get(), 0);
};

// What is on the GPU after copies of `from`, the last of which is of the whole and whose memory is
// overwritten as soon as it is enqueued.
std::vector<std::byte> CopiedBy(CudaDevice* device, std::vector<std::byte> from, int copies) {
  const DeviceBuffer memory = *device->Allocate(kBytes);
  const DeviceBuffer back = *device->AllocatePinned(kBytes);
  const auto stream = *device->CreateStream({});
  const auto done = *device->CreateEvent();
  for (int i = 0; i < copies; ++i) stream->CopyToDevice(memory.get(), from.data(), from.size());
  std::ranges::fill(from, std::byte{0});
  stream->CopyToHost(back.get(), memory.get(), kBytes);
  stream->Record(done.get());
  if (!done->Wait().ok()) return {};
  return {back.get(), back.get() + kBytes};
}

// Checks name no bytes: there are millions.
TEST_CASE("memory that is not registered is copied by way of pinned pieces, and free at once") {
  const std::vector<std::byte> wanted = Pattern();
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    Gpu gpu(seed);
    CHECK((CopiedBy(gpu.device.get(), wanted, 1) == wanted));
    CHECK(gpu.fake.copies_from_pageable() == 0);
    CHECK(gpu.device->use().to_device == kBytes);
  }
}

TEST_CASE("a stream makes its ring once") {
  Gpu gpu(1);
  CHECK((CopiedBy(gpu.device.get(), Pattern(), 3) == Pattern()));
  CHECK(gpu.fake.pinned_allocations() == PinnedRing::kPieces + 1);
}

TEST_CASE("what is registered with one GPU is copied to each without a ring") {
  FakeDriver fake(1);
  fake.SetDeviceCount(2);
  const auto driver = *Driver::Create(FakeDriver::functions(), 0);
  const auto first = *CudaDevice::Create(driver.get(), 0);
  const auto second = *CudaDevice::Create(driver.get(), 1);
  const std::vector<std::byte> values = Pattern();
  const auto registration = *first->RegisterReadOnly(values);
  for (CudaDevice* const device : {first.get(), second.get()}) {
    const DeviceBuffer memory = *device->Allocate(kBytes);
    const auto stream = *device->CreateStream({});
    stream->CopyToDevice(memory.get(), values.data(), kBytes);
  }
  CHECK(fake.copies_to_device() == 2);
  CHECK(fake.copies_from_pageable() == 0);
  CHECK(fake.pinned_allocations() == 0);
}

TEST_CASE("a few bytes need no ring") {
  Gpu gpu(1);
  const std::vector<std::byte> few(PinnedRing::kLeastBytes - 1);
  const DeviceBuffer memory = *gpu.device->Allocate(few.size());
  const auto stream = *gpu.device->CreateStream({});
  stream->CopyToDevice(memory.get(), few.data(), few.size());
  CHECK(gpu.fake.copies_from_pageable() == 1);
  CHECK(gpu.fake.pinned_allocations() == 0);
}

TEST_CASE("where the host cannot pin a ring the driver copies, which is told of once") {
  Gpu gpu(1);
  const std::vector<std::byte> values = Pattern();
  const DeviceBuffer memory = *gpu.device->Allocate(kBytes);
  const auto stream = *gpu.device->CreateStream({});
  const std::vector<std::string> lines = test::LogLines([&] {
    gpu.fake.FailCall(1, kErrorOutOfMemory);  // after cuCtxSetCurrent
    stream->CopyToDevice(memory.get(), values.data(), kBytes);
    CHECK(gpu.fake.failed_call() == "cuMemHostAlloc");
    stream->CopyToDevice(memory.get(), values.data(), kBytes);
  });
  CHECK(gpu.fake.copies_from_pageable() == 2);
  CHECK(gpu.device->status().ok());
  REQUIRE(lines.size() == 1);
  CHECK_THAT(lines[0], Catch::Contains("cuda:0 copies from memory that is not registered through "
                                       "its driver's buffers, at a fraction of the speed: cuda:0: "
                                       "the host cannot pin 1048576 bytes") &&
                           Catch::Contains("Remedy: "));
}

TEST_CASE("where the host cannot pin a ring no stream of the GPU asks again") {
  Gpu gpu(1);
  const std::vector<std::byte> values = Pattern();
  const DeviceBuffer memory = *gpu.device->Allocate(kBytes);
  const auto first = *gpu.device->CreateStream({});
  const auto second = *gpu.device->CreateStream({});
  const std::vector<std::string> lines = test::LogLines([&] {
    gpu.fake.FailCall(1, kErrorOutOfMemory);  // after cuCtxSetCurrent
    first->CopyToDevice(memory.get(), values.data(), kBytes);
    CHECK(gpu.fake.failed_call() == "cuMemHostAlloc");
    second->CopyToDevice(memory.get(), values.data(), kBytes);
  });
  CHECK(gpu.fake.copies_from_pageable() == 2);
  CHECK(gpu.fake.pinned_allocations() == 0);
  CHECK(lines.size() == 1);
}

TEST_CASE("a call that fails within a copy in pieces is the GPU's error, and nothing is left") {
  int64_t calls = 1;
  for (int64_t n = 0; n < calls; ++n) {
    CAPTURE(n);
    Gpu gpu(static_cast<uint64_t>(n));
    {
      const std::vector<std::byte> values = Pattern();
      const DeviceBuffer memory = *gpu.device->Allocate(kBytes);
      const auto stream = *gpu.device->CreateStream({});
      const int64_t before = gpu.fake.calls();
      if (n > 0) gpu.fake.FailCall(n - 1, test::kErrorLaunchFailed);
      stream->CopyToDevice(memory.get(), values.data(), kBytes);
      if (n == 0) calls = gpu.fake.calls() - before + 1;
      const absl::Status status = gpu.device->status();
      CHECK(status.ok() == (n == 0));
      CHECK_THAT(std::string(status.message()), Catch::Contains(gpu.fake.failed_call()));
    }
    CHECK(gpu.fake.live() == 1);  // the context
  }
  CHECK(calls > 30);
}

}  // namespace
}  // namespace lockstep::worker::cuda
