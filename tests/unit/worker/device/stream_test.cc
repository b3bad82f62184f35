// What every device promises of its streams and events: the CPU's, lazy or with a thread, and the
// deferred one of the tests.
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/deferred_device.h"
#include "worker/device/cpu/cpu_device.h"
#include "worker/device/host_stream.h"

namespace lockstep::worker {
namespace {

struct Kind {
  std::string name;
  std::unique_ptr<Device> device;
  StreamOptions options;
};

std::vector<Kind> AllKinds() {
  std::vector<Kind> kinds;
  kinds.push_back({"lazy", std::make_unique<CpuDevice>(1), {}});
  kinds.push_back({"background", std::make_unique<CpuDevice>(1), {.background = true}});
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    kinds.push_back({"deferred", std::make_unique<test::DeferredDevice>(1, seed), {}});
  }
  return kinds;
}

// Appends numbers to a list when the stream comes to them.
class Journal {
 public:
  void Note(Stream* stream, uint64_t number) {
    const auto note = [](void* object, const void*, uint64_t n) {
      static_cast<Journal*>(object)->numbers.push_back(n);
      return absl::OkStatus();
    };
    static_cast<HostStream*>(stream)->Enqueue({note, this, nullptr, number});
  }
  std::vector<uint64_t> numbers;
};

void Fail(Stream* stream) {
  const auto fail = [](void*, const void*, uint64_t number) {
    return absl::InternalError(std::to_string(number));
  };
  static_cast<HostStream*>(stream)->Enqueue({fail, nullptr, nullptr, 1});
  static_cast<HostStream*>(stream)->Enqueue({fail, nullptr, nullptr, 2});
}

TEST_CASE("memory that was copied to a device and back is the same") {
  for (const Kind& kind : AllKinds()) {
    INFO(kind.name);
    const auto stream = *kind.device->CreateStream(kind.options);
    const auto event = *kind.device->CreateEvent();
    const std::string text = "gradients";
    const DeviceBuffer on_device = *kind.device->Allocate(text.size());
    const DeviceBuffer pinned = *kind.device->AllocatePinned(text.size());
    stream->CopyToDevice(on_device.get(), text.data(), text.size());
    stream->CopyToHost(pinned.get(), on_device.get(), text.size());
    stream->Record(event.get());
    REQUIRE(event->Wait().ok());
    CHECK(std::memcmp(pinned.get(), text.data(), text.size()) == 0);
  }
}

TEST_CASE("a stream's work runs in order, and its events say how far it is") {
  for (const Kind& kind : AllKinds()) {
    INFO(kind.name);
    const auto stream = *kind.device->CreateStream(kind.options);
    const auto event = *kind.device->CreateEvent();
    CHECK(event->Wait().ok());  // was never recorded
    Journal journal;
    for (int round = 0; round < 3; ++round) {
      journal.numbers.clear();
      for (uint64_t i = 0; i < 10; ++i) journal.Note(stream.get(), i);
      stream->Record(event.get());
      REQUIRE(event->Wait().ok());
      CHECK(journal.numbers == std::vector<uint64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
    }
  }
}

TEST_CASE("a stream that waits for another's event runs after it") {
  for (const Kind& kind : AllKinds()) {
    INFO(kind.name);
    const auto first = *kind.device->CreateStream(kind.options);
    const auto second = *kind.device->CreateStream(kind.options);
    const auto passed = *kind.device->CreateEvent();
    const auto finished = *kind.device->CreateEvent();
    Journal journal;
    for (uint64_t round = 0; round < 5; ++round) {
      journal.Note(first.get(), 2 * round);
      first->Record(passed.get());
      second->WaitFor(passed.get());
      journal.Note(second.get(), 2 * round + 1);
      second->Record(finished.get());
      first->WaitFor(finished.get());
    }
    REQUIRE(finished->Wait().ok());
    CHECK(journal.numbers == std::vector<uint64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  }
}

TEST_CASE("the first error stays, work after it is skipped and events are reached") {
  for (const Kind& kind : AllKinds()) {
    INFO(kind.name);
    const auto stream = *kind.device->CreateStream(kind.options);
    const auto event = *kind.device->CreateEvent();
    Journal journal;
    journal.Note(stream.get(), 1);
    Fail(stream.get());
    journal.Note(stream.get(), 2);
    stream->Record(event.get());
    CHECK(event->Wait() == absl::InternalError("1"));
    CHECK(kind.device->status() == absl::InternalError("1"));
    CHECK(journal.numbers == std::vector<uint64_t>{1});
  }
}

TEST_CASE("a lazy stream runs no further than the event that is waited for") {
  CpuDevice device(1);
  const auto stream = *device.CreateStream({});
  const auto first = *device.CreateEvent();
  const auto last = *device.CreateEvent();
  Journal journal;
  journal.Note(stream.get(), 1);
  stream->Record(first.get());
  journal.Note(stream.get(), 2);
  stream->Record(last.get());
  CHECK(journal.numbers.empty());
  REQUIRE(first->Wait().ok());
  CHECK(journal.numbers == std::vector<uint64_t>{1});
  REQUIRE(last->Wait().ok());
  CHECK(journal.numbers == std::vector<uint64_t>{1, 2});
}

// How a child process ends that does `work`.
template <typename Work>
bool Survives(const Work& work) {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::signal(SIGSEGV, SIG_DFL);
    work();
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST_CASE("the host cannot touch the memory of a deferred device") {
  test::DeferredDevice device(1, 1);
  const DeviceBuffer buffer = *device.Allocate(64);
  const DeviceBuffer pinned = *device.AllocatePinned(64);
  volatile std::byte* const memory = buffer.get();
  volatile std::byte* const host = pinned.get();
  CHECK_FALSE(Survives([&] { static_cast<void>(*memory == std::byte{0}); }));
  CHECK_FALSE(Survives([&] { *memory = std::byte{1}; }));
  CHECK(Survives([&] { *host = std::byte{1}; }));
  // Its own work has left it as it was.
  const auto stream = *device.CreateStream({});
  const auto event = *device.CreateEvent();
  const char text[] = "text";
  stream->CopyToDevice(buffer.get(), text, sizeof(text));
  stream->Record(event.get());
  REQUIRE(event->Wait().ok());
  CHECK_FALSE(Survives([&] { static_cast<void>(*memory == std::byte{0}); }));
}

TEST_CASE("memory of a deferred device is used again, and runs out") {
  test::DeferredDevice device(1, 1);
  std::byte* const first = device.Allocate(1000)->get();
  const DeviceBuffer again = *device.Allocate(500);
  CHECK(again.get() == first);
  CHECK((*device.Allocate(64)).get() != first);
  CHECK(absl::IsResourceExhausted(device.Allocate(size_t{1} << 40).status()));
}

}  // namespace
}  // namespace lockstep::worker
