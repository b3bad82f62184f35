// What every device promises of its streams and events: the CPU's, lazy or with a thread, a GPU's
// over a driver without a GPU, and the deferred one of the tests.
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <csignal>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/cuda/fake_driver.h"
#include "tests/support/deferred_device.h"
#include "worker/device/cpu/cpu_device.h"
#include "worker/device/cuda/cuda_device.h"
#include "worker/device/host_stream.h"

namespace lockstep::worker {
namespace {

struct Kind {
  std::string name;
  Device* device = nullptr;
  StreamOptions options;
  // The piece of work that comes next fails. Null: work of the host can fail by itself.
  std::function<void()> fail_next;
};

constexpr uint64_t kSeeds = 20;

void ForEachKind(const std::function<void(const Kind&)>& test) {
  CpuDevice lazy(1);
  test({"lazy", &lazy, {}, nullptr});
  CpuDevice background(1);
  test({"background", &background, {.background = true}, nullptr});
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    test::DeferredDevice deferred(1, seed);
    test({"deferred", &deferred, {}, nullptr});
  }
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    test::FakeDriver fake(seed);
    const auto driver = *cuda::Driver::Create(test::FakeDriver::functions(), 0);
    const auto device = *cuda::CudaDevice::Create(driver.get(), 0);
    test({"cuda", device.get(), {}, [&] { fake.work()->FailTask(0); }});
  }
}

// A number in the memory of a device. When a stream comes to a note, it keeps the number that was
// there and writes the note's own.
class Journal {
 public:
  static constexpr size_t kNotes = 32;

  explicit Journal(Device* device) : number_(*device->Allocate(sizeof(uint64_t))) {
    for (size_t i = 0; i < kNotes; ++i) notes_[i] = i;
  }
  void Note(Stream* stream, size_t note) {
    stream->CopyToHost(&before_[note], number_.get(), sizeof(uint64_t));
    stream->CopyToDevice(number_.get(), &notes_[note], sizeof(uint64_t));
  }
  // The note that came before this one.
  uint64_t before(size_t note) const { return before_[note]; }

 private:
  const DeviceBuffer number_;
  std::array<uint64_t, kNotes> notes_ = {};
  std::array<uint64_t, kNotes> before_ = {};
};

// Appends numbers to a list when a stream of the host comes to them.
class HostJournal {
 public:
  void Note(Stream* stream, uint64_t number) {
    const auto note = [](void* object, const void*, uint64_t n) {
      static_cast<HostJournal*>(object)->numbers.push_back(n);
      return absl::OkStatus();
    };
    static_cast<HostStream*>(stream)->Enqueue({note, this, nullptr, number});
  }
  std::vector<uint64_t> numbers;
};

void Fail(const Kind& kind, Stream* stream) {
  if (kind.fail_next != nullptr) return kind.fail_next();
  const auto fail = [](void*, const void*, uint64_t number) {
    return absl::InternalError(std::to_string(number));
  };
  static_cast<HostStream*>(stream)->Enqueue({fail, nullptr, nullptr, 1});
  static_cast<HostStream*>(stream)->Enqueue({fail, nullptr, nullptr, 2});
}

TEST_CASE("memory that was copied to a device and back is the same") {
  ForEachKind([](const Kind& kind) {
    INFO(kind.name);
    const auto stream = *kind.device->CreateStream(kind.options);
    const auto event = *kind.device->CreateEvent();
    std::string text = "gradients";
    const DeviceBuffer on_device = *kind.device->Allocate(text.size());
    const DeviceBuffer pinned = *kind.device->AllocatePinned(text.size());
    const HostRegistration registered =
        *kind.device->RegisterHost(std::as_writable_bytes(std::span(text)));
    stream->CopyToDevice(on_device.get(), text.data(), text.size());
    stream->CopyToHost(pinned.get(), on_device.get(), text.size());
    stream->Record(event.get());
    REQUIRE(event->Wait().ok());
    CHECK(std::memcmp(pinned.get(), text.data(), text.size()) == 0);
  });
}

TEST_CASE("a stream's work runs in order, and its events say how far it is") {
  ForEachKind([](const Kind& kind) {
    INFO(kind.name);
    const auto stream = *kind.device->CreateStream(kind.options);
    const auto event = *kind.device->CreateEvent();
    CHECK(event->Wait().ok());  // was never recorded
    Journal journal(kind.device);
    size_t last = 0;
    for (int round = 0; round < 3; ++round) {
      for (int i = 0; i < 10; ++i) journal.Note(stream.get(), ++last);
      stream->Record(event.get());
      REQUIRE(event->Wait().ok());
      for (size_t note = last - 8; note <= last; ++note) CHECK(journal.before(note) == note - 1);
    }
  });
}

TEST_CASE("a stream that waits for another's event runs after it") {
  ForEachKind([](const Kind& kind) {
    INFO(kind.name);
    // The events outlive the streams, which wait for them to the end.
    const auto passed = *kind.device->CreateEvent();
    const auto finished = *kind.device->CreateEvent();
    const auto first = *kind.device->CreateStream(kind.options);
    const auto second = *kind.device->CreateStream(kind.options);
    Journal journal(kind.device);
    for (size_t round = 0; round < 5; ++round) {
      journal.Note(first.get(), 2 * round);
      first->Record(passed.get());
      second->WaitFor(passed.get());
      journal.Note(second.get(), 2 * round + 1);
      second->Record(finished.get());
      first->WaitFor(finished.get());
    }
    REQUIRE(finished->Wait().ok());
    for (size_t note = 1; note < 10; ++note) CHECK(journal.before(note) == note - 1);
  });
}

TEST_CASE("the first error stays, work after it is skipped and events are reached") {
  ForEachKind([](const Kind& kind) {
    INFO(kind.name);
    const auto stream = *kind.device->CreateStream(kind.options);
    const auto event = *kind.device->CreateEvent();
    const DeviceBuffer number = *kind.device->Allocate(sizeof(uint64_t));
    const uint64_t written = 7;
    uint64_t read = 0;
    Fail(kind, stream.get());
    stream->CopyToDevice(number.get(), &written, sizeof(written));
    stream->CopyToHost(&read, number.get(), sizeof(read));
    stream->Record(event.get());
    const absl::Status error = event->Wait();
    CHECK(absl::IsInternal(error));
    CHECK(kind.device->status() == error);
    stream->CopyToHost(&read, number.get(), sizeof(read));
    stream->Record(event.get());
    CHECK(event->Wait() == error);
    CHECK(read == 0);
    if (kind.fail_next == nullptr) CHECK(error.message() == "1");
  });
}

TEST_CASE("a lazy stream runs no further than the event that is waited for") {
  CpuDevice device(1);
  const auto stream = *device.CreateStream({});
  const auto first = *device.CreateEvent();
  const auto last = *device.CreateEvent();
  HostJournal journal;
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
