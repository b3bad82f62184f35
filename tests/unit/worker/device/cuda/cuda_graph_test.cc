// Work of a GPU's stream that is captured, over a driver without a GPU.
#include "worker/device/cuda/cuda_graph.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "tests/support/cuda/fake_driver.h"
#include "worker/device/cuda/cuda_device.h"
#include "worker/device/cuda/cuda_stream.h"

namespace lockstep::worker::cuda {
namespace {

using test::FakeDriver;

// Two numbers of the host, one of a GPU, and a stream that brings the first to the other.
struct Copies {
  explicit Copies(uint64_t seed) : fake(seed) {}

  absl::Status Enqueue() {
    stream->CopyToDevice(memory.get(), &sent, sizeof(sent));
    stream->CopyToHost(&received, memory.get(), sizeof(received));
    stream->Record(done.get());
    return absl::OkStatus();
  }
  std::unique_ptr<WorkGraph> Capture() {
    return stream->Capture([this] { return Enqueue(); });
  }

  FakeDriver fake;
  const std::unique_ptr<Driver> driver = *Driver::Create(FakeDriver::functions(), 0);
  const std::unique_ptr<CudaDevice> device = *CudaDevice::Create(driver.get(), 0);
  uint64_t sent = 41;
  uint64_t received = 0;
  const DeviceBuffer memory = *device->Allocate(sizeof(sent));
  const std::unique_ptr<Event> done = *device->CreateEvent();
  const std::unique_ptr<Stream> stream = *device->CreateStream({});
};

TEST_CASE("captured work runs when it is launched, each time with what is in memory then") {
  Copies copies(1);
  const auto graph = copies.Capture();
  REQUIRE(graph != nullptr);
  REQUIRE(copies.done->Wait().ok());  // was not recorded
  CHECK(copies.received == 0);
  CHECK(copies.device->use().graph_launches == 0);
  for (const uint64_t number : {5, 6, 7}) {
    copies.sent = number;
    copies.stream->Launch(*graph);
    CHECK(copies.received != number);  // the stream has not come to it
    REQUIRE(copies.done->Wait().ok());
    CHECK(copies.received == number);
  }
  CHECK(copies.device->use().graph_launches == 3);
  CHECK(copies.device->use().to_device == 3 * sizeof(uint64_t));
  CHECK(copies.device->use().to_host == 3 * sizeof(uint64_t));
}

TEST_CASE("a stream that has captured work enqueues as before, in order with its launches") {
  Copies copies(1);
  const auto graph = copies.Capture();
  copies.stream->Launch(*graph);
  const uint64_t last = 9;
  uint64_t read = 0;
  copies.stream->CopyToDevice(copies.memory.get(), &last, sizeof(last));
  copies.stream->CopyToHost(&read, copies.memory.get(), sizeof(read));
  copies.stream->Record(copies.done.get());
  REQUIRE(copies.done->Wait().ok());
  CHECK(copies.received == 41);
  CHECK(read == 9);
}

TEST_CASE("another stream that waits for an event of a graph waits for its last launch") {
  int64_t wrong = 0;
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Copies copies(seed);
    const auto other = *copies.device->CreateStream({});
    const auto read = *copies.device->CreateEvent();
    const auto graph = copies.Capture();
    for (const uint64_t number : {5, 6}) {
      copies.sent = number;
      uint64_t seen = 0;
      copies.stream->Launch(*graph);
      other->WaitFor(copies.done.get());
      other->CopyToHost(&seen, copies.memory.get(), sizeof(seen));
      other->Record(read.get());
      REQUIRE(read->Wait().ok());
      wrong += seen != number;
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("work that waits for another stream is captured, and waits in each launch") {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Copies copies(seed);
    const auto other = *copies.device->CreateStream({});
    const auto written = *copies.device->CreateEvent();
    const auto graph = copies.stream->Capture([&] {
      copies.stream->WaitFor(written.get());
      copies.stream->CopyToHost(&copies.received, copies.memory.get(), sizeof(uint64_t));
      copies.stream->Record(copies.done.get());
      return absl::OkStatus();
    });
    REQUIRE(graph != nullptr);
    for (const uint64_t number : {5, 6}) {
      other->CopyToDevice(copies.memory.get(), &number, sizeof(number));
      other->Record(written.get());
      copies.stream->Launch(*graph);
      REQUIRE(copies.done->Wait().ok());
      CHECK(copies.received == number);
    }
  }
}

TEST_CASE("a call that a capture forbids ends it, and the work can be enqueued") {
  const DriverFunctions& calls = FakeDriver::functions();
  void* pinned = nullptr;
  CUdeviceptr memory = 0;
  CUstream stream = nullptr;
  const std::function<CUresult()> forbidden[] = {
      [&] { return calls.MemAlloc(&memory, 8); },
      [&] { return calls.MemHostAlloc(&pinned, 8, 0); },
      [&] { return calls.StreamSynchronize(stream); },
      [&] { return calls.CtxSynchronize(); },
  };
  for (const auto& call : forbidden) {
    Copies copies(1);
    stream = static_cast<CudaStream*>(copies.stream.get())->get();
    CUresult result = kSuccess;
    const auto graph = copies.stream->Capture([&] {
      result = call();
      return copies.Enqueue();
    });
    CHECK(result == kErrorCaptureUnsupported);
    CHECK(graph == nullptr);
    CHECK(copies.device->status().ok());
    REQUIRE(copies.Enqueue().ok());
    REQUIRE(copies.done->Wait().ok());
    CHECK(copies.received == 41);
  }
}

TEST_CASE("other threads take memory while a stream captures") {
  Copies copies(1);
  const auto graph = copies.stream->Capture([&] {
    std::thread([&] { CHECK(copies.device->Allocate(8).ok()); }).join();
    return copies.Enqueue();
  });
  CHECK(graph != nullptr);
}

TEST_CASE("a wait for a GPU that has failed begins once no other thread captures there") {
  for (int round = 0; round < 20; ++round) {
    Copies copies(1);
    REQUIRE(copies.Enqueue().ok());
    std::atomic<bool> is_waiting = false;
    std::thread waits;
    const auto graph = copies.stream->Capture([&] {
      copies.device->Fail(test::kErrorLaunchFailed, "cuLaunchKernel");
      waits = std::thread([&] {
        is_waiting = true;
        CHECK_FALSE(copies.done->Wait().ok());
      });
      while (!is_waiting) std::this_thread::yield();
      for (int i = 0; i < 100; ++i) std::this_thread::yield();  // would meet the capture
      return absl::OkStatus();
    });
    waits.join();
    CHECK(graph == nullptr);
    CHECK(copies.received == 41);  // it has waited for the copy, whose memory may be freed now
  }
}

TEST_CASE("an error of the work that is captured captures nothing") {
  Copies copies(1);
  const auto graph = copies.stream->Capture([&] {
    copies.Enqueue().IgnoreError();
    return absl::InternalError("no plan");
  });
  CHECK(graph == nullptr);
  CHECK(copies.device->status().ok());
  CHECK(copies.Capture() != nullptr);
}

TEST_CASE("an event that a capture has not made part of its graph cannot be waited for") {
  Copies copies(1);
  CUresult result = kSuccess;
  const CUevent event = static_cast<CudaEvent*>(copies.done.get())->get();
  const CUstream stream = static_cast<CudaStream*>(copies.stream.get())->get();
  const auto graph = copies.stream->Capture([&] {
    result = FakeDriver::functions().EventRecord(event, stream);
    return absl::OkStatus();
  });
  CHECK(result == kSuccess);
  CHECK(FakeDriver::functions().EventSynchronize(event) == kErrorCapturedEvent);
}

// Captures and launches, or enqueues what could not be captured. Whether it was captured.
bool RunOnce(Copies& copies) {
  const auto graph = copies.Capture();
  if (graph != nullptr) {
    copies.stream->Launch(*graph);
  } else {
    copies.Enqueue().IgnoreError();
  }
  const absl::Status status = copies.done->Wait();
  if (status.ok()) {
    CHECK(copies.received == 41);
  } else {
    CHECK_THAT(std::string(status.message()), Catch::Contains(copies.fake.failed_call()));
  }
  return graph != nullptr;
}

TEST_CASE("each call of a capture and its launch fails with its name, or is done without") {
  int64_t calls = 0;
  {
    Copies copies(1);
    const int64_t before = copies.fake.calls();
    CHECK(RunOnce(copies));
    calls = copies.fake.calls() - before;
  }
  CHECK(calls > 10);
  for (const CUresult error :
       {test::kErrorLaunchFailed, kErrorCaptureUnsupported, kErrorOutOfMemory}) {
    int64_t refused = 0;
    for (int64_t n = 0; n < calls; ++n) {
      INFO("call " << n << ", error " << error);
      Copies copies(static_cast<uint64_t>(n));
      copies.fake.FailCall(n, error);
      const bool is_refused = !RunOnce(copies) && copies.device->status().ok();
      refused += is_refused;
      CHECK_FALSE(copies.fake.failed_call().empty());
      const std::string graph_error = copies.device->use().graph_error;
      if (is_refused) {
        CHECK_THAT(graph_error, Catch::Contains(copies.fake.failed_call()));
      } else {
        CHECK(graph_error.empty());
      }
      CHECK(copies.fake.live() == 4);  // memory, event, stream, context
    }
    // Begin, three pieces of work, end, instantiate, upload.
    CHECK(refused == (error == test::kErrorLaunchFailed ? 0 : 7));
  }
}

}  // namespace
}  // namespace lockstep::worker::cuda
