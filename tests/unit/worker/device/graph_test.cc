// What devices promise of work that their streams capture, where they capture any.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <span>

#include "tests/support/test_device.h"
#include "worker/device/device.h"

namespace lockstep::worker {
namespace {

constexpr size_t kCount = size_t{1} << 21;  // 16 MiB: 0.3 ms over PCIe, so that a wait matters
constexpr size_t kBytes = kCount * sizeof(uint64_t);

std::span<uint64_t> Numbers(const DeviceBuffer& buffer) {
  return {reinterpret_cast<uint64_t*>(buffer.get()), kCount};
}

TEST_CASE("streams and hosts that wait for an event of a graph wait for its last launch") {
  const auto device = test::MakeTestDevice(/*threads=*/1);
  const auto sent = *device->AllocatePinned(kBytes);
  const auto received = *device->AllocatePinned(kBytes);
  const auto memory = *device->Allocate(kBytes);
  const auto written = *device->CreateEvent();
  const auto read = *device->CreateEvent();
  const auto stream = *device->CreateStream({});
  const auto other = *device->CreateStream({});
  const auto graph = stream->Capture([&] {
    stream->CopyToDevice(memory.get(), sent.get(), kBytes);
    stream->Record(written.get());
    return absl::OkStatus();
  });
  REQUIRE(graph != nullptr);
  for (uint64_t round = 1; round <= 20; ++round) {
    CAPTURE(round);
    std::ranges::fill(Numbers(sent), round);
    stream->Launch(*graph);
    if (round % 2 == 0) {
      REQUIRE(written->Wait().ok());
    } else {
      other->WaitFor(written.get());
    }
    other->CopyToHost(received.get(), memory.get(), kBytes);
    other->Record(read.get());
    REQUIRE(read->Wait().ok());
    CHECK(std::ranges::count(Numbers(received), round) == static_cast<int64_t>(kCount));
    REQUIRE(written->Wait().ok());  // before `sent` changes
  }
  CHECK(device->use().graph_launches >= 20);
}

}  // namespace
}  // namespace lockstep::worker
