// A GPU's memory, streams and errors, over a driver without a GPU.
#include "worker/device/cuda/cuda_device.h"

#include <array>
#include <catch2/catch.hpp>
#include <cstring>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "common/base/exit_code.h"
#include "common/base/status_macros.h"
#include "tests/support/cuda/fake_driver.h"
#include "tests/support/cuda/fake_nvml.h"

namespace lockstep::worker::cuda {
namespace {

using test::FakeDriver;

std::unique_ptr<Driver> MadeDriver() { return *Driver::Create(FakeDriver::functions(), 0); }

TEST_CASE("a GPU is named as its flag names it, and one that is not there is an error") {
  FakeDriver fake(1);
  const auto driver = MadeDriver();
  CHECK((*CudaDevice::Create(driver.get(), 0))->name() == "cuda:0");
  const absl::Status missing = CudaDevice::Create(driver.get(), 1).status();
  CHECK_THAT(std::string(missing.message()), Catch::Contains("cuda:1: cuDeviceGet: CUDA_ERROR"));
  CHECK(fake.live() == 0);
}

TEST_CASE("memory that a GPU does not have is an error with both sizes, and no lasting one") {
  FakeDriver fake(1);
  fake.SetMemory(1000);
  const auto driver = MadeDriver();
  const auto device = *CudaDevice::Create(driver.get(), 0);
  DeviceBuffer held = *device->Allocate(400);
  // Whoever starts the worker again with the same job gets no further.
  CHECK(device->Allocate(601).status() ==
        WithExitCode(absl::ResourceExhaustedError(
                         "cuda:0: no memory for 601 bytes: 600 of its 1000 bytes are free. Remedy: "
                         "a smaller batch per tower, or fewer towers on this GPU"),
                     ExitCode::kBadConfiguration));
  CHECK(device->status().ok());
  held.reset();
  CHECK(device->Allocate(1000).ok());
  CHECK(device->Allocate(0).ok());
}

TEST_CASE("a limit on a GPU's memory holds over all that is allocated at a time") {
  FakeDriver fake(1);
  const auto driver = MadeDriver();
  const auto device = *CudaDevice::Create(driver.get(), 0, {.memory_limit = 1000});
  auto held = *device->Allocate(400);
  CHECK(device->use().memory == 400);
  CHECK(device->use().memory_limit == 1000);
  const absl::Status refused = device->Allocate(601).status();
  CHECK(absl::IsResourceExhausted(refused));
  CHECK(ExitCodeFor(refused) == ExitCode::kBadConfiguration);
  CHECK(refused.message() ==
        "cuda:0: no memory for 601 bytes: 400 of the 1000 bytes of --gpu_memory_limit are in use. "
        "Remedy: a greater limit, a smaller batch per tower, or fewer towers on this GPU");
  CHECK(device->Allocate(600).ok());
  fake.FailCall(1, kErrorOutOfMemory);  // after cuCtxSetCurrent
  CHECK_FALSE(device->Allocate(8).ok());
  CHECK(device->use().memory == 400);
  held.reset();
  CHECK(device->use().memory == 0);
  CHECK(device->Allocate(1000).ok());
  CHECK(device->status().ok());
}

TEST_CASE("a GPU reads another one's memory directly where there is a link") {
  FakeDriver fake(1);
  fake.SetDeviceCount(2);
  const auto driver = MadeDriver();
  const auto first = *CudaDevice::Create(driver.get(), 0);
  const auto second = *CudaDevice::Create(driver.get(), 1);
  CHECK(first->EnablePeerAccess(*first).ok());
  CHECK(first->EnablePeerAccess(*second).ok());
  fake.FailCall(2, kErrorPeerAccessAlreadyEnabled);  // cuCtxEnablePeerAccess
  CHECK(first->EnablePeerAccess(*second).ok());
  fake.FailCall(2, test::kErrorLaunchFailed);
  CHECK_THAT(std::string(first->EnablePeerAccess(*second).message()),
             Catch::StartsWith("cuCtxEnablePeerAccess: CUDA_ERROR"));
  fake.CutLink(0, 1);
  CHECK(first->EnablePeerAccess(*second).message() == "no direct link");
  CHECK_FALSE(*first->HasLinkTo(*second));
  CHECK(*second->HasLinkTo(*first));
  fake.FailCall(0, test::kErrorLaunchFailed);
  CHECK_THAT(std::string(first->HasLinkTo(*second).status().message()),
             Catch::StartsWith("cuDeviceCanAccessPeer: CUDA_ERROR"));
  fake.CutLinks();
  CHECK_FALSE(*second->HasLinkTo(*first));
  CHECK(*second->HasLinkTo(*second));
  CHECK(first->status().ok());
}

TEST_CASE("a GPU copies another one's memory once it is written, and none takes another's work") {
  FakeDriver fake(1);
  fake.SetDeviceCount(2);
  const auto driver = MadeDriver();
  const auto first = *CudaDevice::Create(driver.get(), 0);
  const auto second = *CudaDevice::Create(driver.get(), 1);
  const auto here = *first->Allocate(8);
  const auto there = *second->Allocate(8);
  const auto pinned = *second->AllocatePinned(16);
  std::memcpy(pinned.get(), "gradient", 8);
  const auto stream = *first->CreateStream({});
  const auto other_stream = *second->CreateStream({});
  const auto written = *second->CreateEvent();
  const auto copied = *first->CreateEvent();
  other_stream->CopyToDevice(there.get(), pinned.get(), 8);
  other_stream->Record(written.get());
  stream->WaitFor(written.get());
  stream->CopyFromPeer(here.get(), there.get(), 8);
  stream->CopyToHost(pinned.get() + 8, here.get(), 8);
  stream->Record(copied.get());
  REQUIRE(copied->Wait().ok());
  CHECK(std::memcmp(pinned.get(), pinned.get() + 8, 8) == 0);

  stream->CopyFromPeer(there.get(), here.get(), 8);
  CHECK_THAT(std::string(first->status().message()),
             Catch::StartsWith("cuda:0: cuMemcpyAsync of 8 bytes from another GPU: CUDA_ERROR"));
  CHECK(second->status().ok());
}

TEST_CASE("an error of a GPU's hardware is the device's, with its exit code and the remedy") {
  FakeDriver fake(1);
  test::FakeNvml nvml;
  const auto driver = MadeDriver();
  const auto device = *CudaDevice::Create(driver.get(), 0);
  device->Watch(nvml.library(), [] {});
  while (!device->use().utilization.has_value()) std::this_thread::yield();
  CHECK(device->use().utilization == test::FakeNvml::kUtilization);
  nvml.Add(kNvmlEventXidCriticalError, 79);
  while (!device->has_failed()) std::this_thread::yield();
  CHECK(ExitCodeFor(device->status()) == ExitCode::kDeviceFailed);
  CHECK(device->status().message() ==
        "cuda:0: Xid 79. Remedy: see the kernel's log and nvidia-smi; the GPU may need a reset");
}

TEST_CASE("a GPU counts the bytes that are copied to it and from it") {
  FakeDriver fake(1);
  const auto driver = MadeDriver();
  const auto device = *CudaDevice::Create(driver.get(), 0);
  const auto memory = *device->Allocate(64);
  const auto pinned = *device->AllocatePinned(64);
  const auto stream = *device->CreateStream({});
  stream->CopyToDevice(memory.get(), pinned.get(), 64);
  stream->CopyToHost(pinned.get(), memory.get(), 8);
  CHECK(device->use().to_device == 64);
  CHECK(device->use().to_host == 8);
}

TEST_CASE("host memory that cannot be pinned or registered leaves the GPU as it is") {
  FakeDriver fake(1);
  const auto driver = MadeDriver();
  const auto device = *CudaDevice::Create(driver.get(), 0);
  for (const CUresult refusal : {kErrorOutOfMemory, kErrorOperatingSystem, kErrorNotSupported}) {
    fake.FailCall(1, refusal);  // after cuCtxSetCurrent
    const absl::Status pinned = device->AllocatePinned(64).status();
    CHECK(absl::IsResourceExhausted(pinned));
    CHECK_THAT(std::string(pinned.message()),
               Catch::Contains("cuda:0: the host cannot pin 64 bytes: CUDA_ERROR") &&
                   Catch::Contains("Remedy: "));
    CHECK(ExitCodeFor(pinned) == ExitCode::kBadConfiguration);
  }
  std::vector<std::byte> memory(64);
  const auto once = device->RegisterHost(memory);
  REQUIRE(once.ok());
  const absl::Status twice = device->RegisterHost(memory).status();
  CHECK_THAT(std::string(twice.message()),
             Catch::Contains("cuda:0: cuMemHostRegister of 64 bytes: CUDA_ERROR"));
  CHECK(device->RegisterHost({})->get() == nullptr);
  const std::vector<std::byte> constant(64);
  const auto to_read = device->RegisterReadOnly(constant);
  REQUIRE(to_read.ok());
  CHECK_FALSE(device->RegisterReadOnly(constant).ok());
  CHECK(device->status().ok());
}

TEST_CASE("a GPU knows which memory of the host is pinned or registered, and until when") {
  FakeDriver fake(1);
  const auto driver = MadeDriver();
  const auto device = *CudaDevice::Create(driver.get(), 0);
  std::array<std::byte, 64> memory;
  const std::span<const std::byte> all(memory);
  CHECK_FALSE(device->IsPinned(all));
  {
    const auto registered = *device->RegisterHost(std::span(memory).first(48));
    CHECK(device->IsPinned(all.first(48)));
    CHECK(device->IsPinned(all.subspan(16, 32)));
    CHECK_FALSE(device->IsPinned(all));
    CHECK_FALSE(device->IsPinned(all.subspan(48)));
  }
  CHECK_FALSE(device->IsPinned(all.first(48)));
  std::span<const std::byte> freed;
  {
    const auto pinned = *device->AllocatePinned(64);
    freed = {pinned.get(), 64};
    CHECK(device->IsPinned(freed));
  }
  CHECK_FALSE(device->IsPinned(freed));
}

TEST_CASE("threads other than the one that made a GPU may use it") {
  FakeDriver fake(1);
  const auto driver = MadeDriver();
  const auto device = *CudaDevice::Create(driver.get(), 0);
  std::thread([&] {
    const DeviceBuffer buffer = *device->Allocate(8);
    const auto stream = *device->CreateStream({});
    const auto event = *device->CreateEvent();
    const uint64_t number = 5;
    stream->CopyToDevice(buffer.get(), &number, sizeof(number));
    stream->Record(event.get());
    CHECK(event->Wait().ok());
  }).join();
  CHECK(device->status().ok());
}

// What goes from one stream to another, by way of an event.
struct Handover {
  uint64_t sent = 41;
  uint64_t received = 0;
  int64_t calls = 0;  // of the driver, before anything is freed

  absl::Status Run(FakeDriver& fake) {
    LOCKSTEP_ASSIGN_OR_RETURN(const auto driver, Driver::Create(FakeDriver::functions(), 0));
    LOCKSTEP_ASSIGN_OR_RETURN(const auto device, CudaDevice::Create(driver.get(), 0));
    LOCKSTEP_ASSIGN_OR_RETURN(const DeviceBuffer buffer, device->Allocate(sizeof(sent)));
    LOCKSTEP_ASSIGN_OR_RETURN(const DeviceBuffer pinned, device->AllocatePinned(sizeof(sent)));
    LOCKSTEP_ASSIGN_OR_RETURN(
        const HostRegistration registration,
        device->RegisterHost(std::as_writable_bytes(std::span(&received, 1))));
    LOCKSTEP_ASSIGN_OR_RETURN(const auto upload, device->CreateStream({}));
    LOCKSTEP_ASSIGN_OR_RETURN(const auto download, device->CreateStream({}));
    LOCKSTEP_ASSIGN_OR_RETURN(const auto uploaded, device->CreateEvent());
    LOCKSTEP_ASSIGN_OR_RETURN(const auto downloaded, device->CreateEvent());
    std::memcpy(pinned.get(), &sent, sizeof(sent));
    upload->CopyToDevice(buffer.get(), pinned.get(), sizeof(sent));
    upload->Record(uploaded.get());
    download->WaitFor(uploaded.get());
    download->CopyToHost(&received, buffer.get(), sizeof(received));
    download->Record(downloaded.get());
    const absl::Status waited = downloaded->Wait();
    CHECK(waited == device->status());
    calls = fake.calls();
    return waited;
  }
};

TEST_CASE("whichever call of the driver fails, the error names it and nothing is left behind") {
  int64_t calls = 0;
  int64_t until_end = 0;
  {
    FakeDriver fake(1);
    Handover handover;
    REQUIRE(handover.Run(fake).ok());
    CHECK(handover.received == handover.sent);
    CHECK(fake.live() == 0);
    calls = handover.calls;
    until_end = fake.calls();
  }
  REQUIRE(calls > 20);
  REQUIRE(until_end > calls);
  for (int64_t n = 0; n < until_end; ++n) {
    INFO("call " << n);
    FakeDriver fake(n);
    fake.FailCall(n, test::kErrorLaunchFailed);
    Handover handover;
    const absl::Status status = handover.Run(fake);
    CHECK(fake.live() == 0);
    CHECK_FALSE(fake.failed_call().empty());
    if (n >= calls) continue;  // freeing, when the status has been read
    CHECK_FALSE(status.ok());
    CHECK_THAT(std::string(status.message()), Catch::Contains(fake.failed_call()));
  }
}

TEST_CASE("an error of the work itself is found by the wait, and stays") {
  FakeDriver fake(1);
  fake.work()->FailTask(0);
  Handover handover;
  CHECK(handover.Run(fake) ==
        WithExitCode(absl::InternalError("cuda:0: cuEventSynchronize: CUDA_ERROR_LAUNCH_FAILED (of "
                                         "the fake driver)"),
                     ExitCode::kDeviceFailed));
  CHECK(handover.received == 0);
  CHECK(fake.live() == 0);
}

TEST_CASE("a wait that fails returns when nothing uses the host's memory any more") {
  FakeDriver fake(1);
  const auto driver = MadeDriver();
  const auto device = *CudaDevice::Create(driver.get(), 0);
  const DeviceBuffer buffer = *device->Allocate(8);
  const auto stream = *device->CreateStream({});
  const auto event = *device->CreateEvent();
  const uint64_t number = 7;
  uint64_t read = 0;
  stream->CopyToDevice(buffer.get(), &number, sizeof(number));
  stream->CopyToHost(&read, buffer.get(), sizeof(read));
  fake.FailCall(1, test::kErrorLaunchFailed);  // after cuCtxSetCurrent
  stream->Record(event.get());
  CHECK(fake.failed_call() == "cuEventRecord");
  CHECK(read == 0);
  CHECK_FALSE(event->Wait().ok());
  CHECK(read == 7);
}

TEST_CASE("a wait that is left out is found") {
  int64_t wrong = 0;
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    FakeDriver fake(seed);
    fake.work()->OmitWait(0);
    Handover handover;
    CHECK(handover.Run(fake).ok());
    CHECK(fake.work()->waits() == 1);
    wrong += handover.received != handover.sent;
  }
  CHECK(wrong > 0);
}

TEST_CASE("a stream that is destroyed has done its work") {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    FakeDriver fake(seed);
    const auto driver = MadeDriver();
    const auto device = *CudaDevice::Create(driver.get(), 0);
    const DeviceBuffer buffer = *device->Allocate(8);
    uint64_t number = 6;
    uint64_t read = 0;
    auto stream = *device->CreateStream({});
    stream->CopyToDevice(buffer.get(), &number, sizeof(number));
    stream->CopyToHost(&read, buffer.get(), sizeof(read));
    stream.reset();
    number = 0;
    CHECK(read == 6);
  }
}

}  // namespace
}  // namespace lockstep::worker::cuda
